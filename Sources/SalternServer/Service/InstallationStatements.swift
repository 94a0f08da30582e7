internal import Postgres

/// The installation's row.
struct ReadInstallation: Statement {
    struct Row: Sendable {
        let saltPrefix: String
        let decoySecret: DecoySecret
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT salt_prefix, decoy_secret FROM saltern.installation WHERE singleton"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Makes the installation's row, unless there is one.
struct CreateInstallation: Statement {
    let saltPrefix: String
    let decoySecret: DecoySecret
    /// What decoys show until real accounts exist.
    let iterations: Int32
    /// The history that begins with it.
    let fingerprint: DatabaseFingerprint
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.installation (salt_prefix, decoy_secret, decoy_iterations, decoys_drawn_at, created_at, fingerprint)
        VALUES (\(\.saltPrefix), \(\.decoySecret), array_fill(\(\.iterations)::integer, ARRAY[256]), '-infinity',
            \(\.now), \(\.fingerprint))
        ON CONFLICT (singleton) DO NOTHING
        """
}

/// The number of the schema's latest migration.
struct ReadSchemaVersion: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT coalesce(max(version), 0)::bigint FROM saltern.schema_migrations"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int { Int(try row.next(Int64.self)) }
}
