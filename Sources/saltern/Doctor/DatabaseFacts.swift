import Postgres
import SalternServer

/// What PostgreSQL says about itself and about the role that asks.
struct DatabaseFacts: DecodableRow {
    /// `server_version_num`: 150004 for 15.4.
    let version: Int32
    let isStandby: Bool
    let isSuperuser: Bool
    /// Whether the role owns the schema, or is in a role that does; nil when there is none.
    let ownsSchema: Bool?
    /// Whether the role may read rows, as migrations grant it to the group `saltern_server`.
    let isServer: Bool
    /// Whether a restore has not come to its end (`UnfinishedRestore`).
    let isRestoring: Bool
    /// How many connections the role can have, with everybody else's.
    let connectionLimit: Int32
    let waitsForStandbys: Bool
    /// Whether PostgreSQL is asked over a socket of this machine, or at the address that it is asked from.
    let isHere: Bool
    /// Where the files are; nil when the role may not know.
    let dataDirectory: String?

    init(row: inout RowReader) throws(PostgresError) {
        version = try row.next()
        isStandby = try row.next()
        isSuperuser = try row.next()
        ownsSchema = try row.next()
        isServer = try row.next()
        isRestoring = try row.next()
        connectionLimit = try row.next()
        waitsForStandbys = try row.next()
        isHere = try row.next()
        dataDirectory = try row.next()
    }
}

struct ReadDatabaseFacts: Statement {
    typealias Row = DatabaseFacts

    static let isReadOnly = true
    /// `reserved_connections` came with PostgreSQL 16; -1 is no limit.
    fileprivate static let connectionLimit: SQLFragment = """
        least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                - coalesce(current_setting('reserved_connections', true), '0')::int,
            (SELECT nullif(r.rolconnlimit, -1) FROM pg_roles r WHERE r.rolname = current_user),
            (SELECT nullif(d.datconnlimit, -1) FROM pg_database d WHERE d.datname = current_database()))
        """
    fileprivate static let waitsForStandbys: SQLFragment = "current_setting('synchronous_standby_names') <> ''"
    static let sql: SQL<Self> = """
        SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
            (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user),
            (SELECT pg_has_role(n.nspowner, 'MEMBER') FROM pg_namespace n WHERE n.nspname = 'saltern'),
            coalesce((
                SELECT has_table_privilege(c.oid, 'SELECT') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'saltern' AND c.relname = 'accounts'), false),
            \(UnfinishedRestore.isMarked),
            \(connectionLimit), \(waitsForStandbys), coalesce(inet_server_addr() = inet_client_addr(), true),
            (SELECT s.setting FROM pg_settings s WHERE s.name = 'data_directory')
        """
}

/// What a server that starts warns of, and starts all the same.
struct ReadStartingFacts: Statement {
    struct Row: Sendable {
        let connectionLimit: Int32
        let waitsForStandbys: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(ReadDatabaseFacts.connectionLimit), \(ReadDatabaseFacts.waitsForStandbys)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
