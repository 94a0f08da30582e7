internal import Postgres

/// The installation's row.
struct ReadInstallation: Statement {
    struct Row: Sendable {
        let saltPrefix: String
        let decoySecret: DecoySecret
    }

    static let isReadOnly = true
    static let sql = "SELECT salt_prefix, decoy_secret FROM saltern.installation WHERE singleton"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(saltPrefix: try row.next(), decoySecret: try row.next())
    }
}

/// Makes the installation's row, unless there is one.
struct CreateInstallation: Statement {
    let saltPrefix: String
    let decoySecret: DecoySecret
    /// What decoys show until real accounts exist.
    let iterations: Int32
    let now: Timestamp

    static let sql = """
        INSERT INTO saltern.installation (salt_prefix, decoy_secret, decoy_iterations, decoys_drawn_at, created_at)
        VALUES ($1, $2, array_fill($3::integer, ARRAY[256]), '-infinity', $4)
        ON CONFLICT (singleton) DO NOTHING
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(saltPrefix)
        parameters.append(decoySecret)
        parameters.append(iterations)
        parameters.append(now)
    }
}

/// The number of the schema's latest migration.
struct ReadSchemaVersion: Statement {
    static let isReadOnly = true
    static let sql = "SELECT coalesce(max(version), 0)::bigint FROM saltern.schema_migrations"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int { Int(try row.next(Int64.self)) }
}
