import Postgres

/// What PostgreSQL says about itself and about the role that asks.
struct DatabaseFacts: DecodableRow {
    /// `server_version_num`: 150004 for 15.4.
    let version: Int32
    let isStandby: Bool
    let isSuperuser: Bool
    /// Whether the role owns the schema, or is in a role that does.
    let ownsSchema: Bool
    /// Whether the role may read rows, as migrations grant it to the group `saltern_server`.
    let isServer: Bool
    /// How many connections others than superusers can have.
    let connectionLimit: Int32
    let waitsForStandbys: Bool
    /// Where the files are; nil when the role may not know.
    let dataDirectory: String?

    init(row: inout RowReader) throws(PostgresError) {
        version = try row.next()
        isStandby = try row.next()
        isSuperuser = try row.next()
        ownsSchema = try row.next()
        isServer = try row.next()
        connectionLimit = try row.next()
        waitsForStandbys = try row.next()
        dataDirectory = try row.next()
    }
}

struct ReadDatabaseFacts: Statement {
    typealias Row = DatabaseFacts

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
            (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user),
            coalesce((SELECT pg_has_role(n.nspowner, 'MEMBER') FROM pg_namespace n WHERE n.nspname = 'saltern'), false),
            coalesce((
                SELECT has_table_privilege(c.oid, 'SELECT') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'saltern' AND c.relname = 'accounts'), false),
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
            current_setting('synchronous_standby_names') <> '',
            (SELECT s.setting FROM pg_settings s WHERE s.name = 'data_directory')
        """
}
