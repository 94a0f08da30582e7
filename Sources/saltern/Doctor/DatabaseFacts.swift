import Postgres
import SalternServer

/// Facts about PostgreSQL and the current role.
struct DatabaseFacts: DecodableRow {
    /// `server_version_num`: 150004 for 15.4.
    let version: Int32
    let isStandby: Bool
    let isSuperuser: Bool
    /// True if the role owns the schema, or is a member of its owner; nil without a schema.
    let ownsSchema: Bool?
    /// True if the role may read rows, as migrations grant it to the group `saltern_server`.
    let isServer: Bool
    /// True during a restore or after an incomplete one (`UnfinishedRestore`).
    let isRestoring: Bool
    /// The maximum number of connections of the role, including those in use by others.
    let connectionLimit: Int32
    let waitsForStandbys: Bool
    /// True if PostgreSQL is reached through a socket of this machine, or at the client's own address.
    let isHere: Bool
    /// The data folder; nil if the role may not read it.
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
    /// `reserved_connections` exists from PostgreSQL 16 on; -1 means no limit.
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

/// Returns facts that produce warnings at the start of a server.
struct ReadStartingFacts: Statement {
    struct Row: Sendable {
        let connectionLimit: Int32
        let waitsForStandbys: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(ReadDatabaseFacts.connectionLimit), \(ReadDatabaseFacts.waitsForStandbys)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
