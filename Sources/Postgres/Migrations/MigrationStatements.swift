internal import Cryptography

/// The statements of the migrator. Every name is qualified, so they do not depend on a search path.
enum MigrationStatements {
    /// Creates the history, which the server reads and which contains no secret. Nothing can hold a lock yet.
    static let createHistory = """
        CREATE SCHEMA IF NOT EXISTS saltern;
        CREATE TABLE IF NOT EXISTS saltern.schema_migrations (
            version integer PRIMARY KEY CHECK (version > 0),
            name text NOT NULL,
            checksum bytea NOT NULL CHECK (octet_length(checksum) = 32),
            applied_at timestamptz NOT NULL DEFAULT now(),
            oldest_program integer
        );
        GRANT SELECT ON saltern.schema_migrations TO PUBLIC;
        """

    /// Upgrades a history of an earlier release.
    ///
    /// It needs an exclusive lock. Servers that check their schema would queue behind it, so it does not wait.
    static let widenHistory = """
        SET lock_timeout = '100ms';
        ALTER TABLE saltern.schema_migrations ADD COLUMN IF NOT EXISTS oldest_program integer;
        GRANT SELECT ON saltern.schema_migrations TO PUBLIC;
        """

    /// Reads the catalogue only, without locks.
    struct FindHistory: Statement {
        struct Row: Sendable {
            let exists: Bool
            /// True if ``widenHistory`` was applied.
            let isWide: Bool
        }

        static let sql: SQL<Self> = """
            SELECT count(*) > 0, coalesce(bool_and(
                pg_catalog.has_table_privilege('public', class.oid, 'SELECT') AND EXISTS (
                    SELECT FROM pg_catalog.pg_attribute
                    WHERE attrelid = class.oid AND attname = 'oldest_program' AND NOT attisdropped)), false)
            FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS space ON space.oid = relnamespace
            WHERE nspname = 'saltern' AND relname = 'schema_migrations'
            """

        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
    }

    /// One row of the history.
    struct Applied: Sendable {
        let version: Int
        let name: String
        let checksum: [UInt8]
        let appliedAt: Timestamp
        let oldestProgram: Int
    }

    struct ReadHistory: Statement {
        /// A history of an earlier release has no column `oldest_program` until the next `up`.
        static let sql: SQL<Self> = """
            SELECT version, name, checksum, applied_at,
                coalesce((to_jsonb(history) ->> 'oldest_program')::integer, version)
            FROM saltern.schema_migrations AS history ORDER BY version
            """

        static func decode(_ row: inout RowReader) throws(PostgresError) -> Applied {
            Applied(
                version: Int(try row.next(Int32.self)), name: try row.next(), checksum: try row.next(),
                appliedAt: try row.next(), oldestProgram: Int(try row.next(Int32.self)))
        }
    }

    struct Record: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = """
            INSERT INTO saltern.schema_migrations (version, name, checksum, oldest_program)
            VALUES (\(\.version), \(\.migration.name), \(\.checksum), \(\.oldestProgram))
            """

        let migration: Migration

        private var version: Int32 { Int32(migration.version) }
        private var oldestProgram: Int32 { Int32(migration.oldestProgram) }
        private var checksum: [UInt8] { migration.checksum.withUnsafeBytes { Array($0) } }
    }

    /// Takes a lock until the session ends, so that migrations can have transactions of their own.
    struct Lock: Statement {
        typealias Row = Void
        static let sql: SQL<Self> = "SELECT pg_advisory_lock(\(key))"

        /// "saltern" in ASCII.
        private static let key: Int64 = 0x73_616c_7465_726e
    }
}

/// Returns the encoding in which the database stores text.
public struct FindEncoding: Statement {
    public typealias Row = String

    /// The only encoding that can store every text of a client.
    public static let needed = "UTF8"

    public static let isReadOnly = true
    public static let sql: SQL<Self> = "SELECT pg_catalog.current_setting('server_encoding')"

    public init() {}
}
