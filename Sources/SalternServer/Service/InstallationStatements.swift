internal import Postgres

/// Reads the installation's row.
struct ReadInstallation: Statement {
    struct Row: Sendable {
        let saltPrefix: String
        let decoySecret: DecoySecret
        /// Sealed by a master key.
        let pairwiseKey: [UInt8]?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT salt_prefix, decoy_secret, pairwise_key FROM saltern.installation WHERE singleton"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Creates the installation's row unless it exists.
struct CreateInstallation: Statement {
    let saltPrefix: String
    let decoySecret: DecoySecret
    /// The iterations of decoys until real accounts exist.
    let iterations: Int32
    /// The fingerprint of the database's present history.
    let fingerprint: DatabaseFingerprint
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.installation (salt_prefix, decoy_secret, decoy_iterations, decoys_drawn_at, created_at, fingerprint)
        VALUES (\(\.saltPrefix), \(\.decoySecret), array_fill(\(\.iterations)::integer, ARRAY[256]), '-infinity',
            \(\.now), \(\.fingerprint))
        ON CONFLICT (singleton) DO NOTHING
        """
}

/// Stores the installation's pairwise key, if there is none.
struct StorePairwiseKey: Statement {
    let sealed: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.installation SET pairwise_key = \(\.sealed) WHERE singleton AND pairwise_key IS NULL
        """
}

/// Reads the number of the latest migration and the compatibility of newer ones.
struct ReadSchemaVersion: Statement {
    static let isReadOnly = true
    /// A schema of an earlier release has no column `oldest_program` until the next `saltern migrate up`.
    static let sql: SQL<Self> = """
        SELECT coalesce(max(version), 0),
            coalesce(max(coalesce((to_jsonb(history) ->> 'oldest_program')::integer, version))
                FILTER (WHERE version > \(\.known)), 0)
        FROM saltern.schema_migrations AS history
        """

    private var known: Int32 { Int32(Schema.known) }

    /// Reads the compatibility of the schema with this program.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Schema.Fit {
        Schema.fit(version: Int(try row.next(Int32.self)), oldestProgram: Int(try row.next(Int32.self)))
    }
}
