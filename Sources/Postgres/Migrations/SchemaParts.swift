/// What migrations make, a line for each part: columns, indexes, checks, policies, and what the server's role may do.
///
/// The lines are as ``FindSchemaParts`` writes them, in words of SQL: who has lost one can see what is to be made again.
public struct SchemaParts: Sendable {
    let lines: [String]

    /// - Parameter text: A line for each part.
    public init(_ text: String) { lines = text.split(separator: "\n").map(String.init) }

    /// Those that a database does not have.
    /// - Parameter found: What it has, which may be more.
    func missing(from found: [String]) -> [String] {
        let found = Set(found)
        return lines.filter { !found.contains($0) }
    }
}

/// The parts that are in the schema `saltern` and can be used. What is said of rights is true of one role, however it has come
/// to them.
public struct FindSchemaParts: Statement {
    public typealias Row = String
    public static let isReadOnly = true
    public static let sql: SQL<Self> = """
        WITH role AS (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = coalesce(\(\.role)::text, current_user)),
        space AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'saltern'),
        tables AS (
            SELECT c.oid, c.relname FROM pg_catalog.pg_class c JOIN space ON space.oid = c.relnamespace
            WHERE c.relkind = 'r'),
        columns AS (
            SELECT t.oid, t.relname, a.attnum, a.attname, a.attnotnull,
                pg_catalog.format_type(a.atttypid, a.atttypmod) AS type
            FROM tables t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid
            WHERE a.attnum > 0 AND NOT a.attisdropped)
        SELECT concat('COLUMN ', relname, '.', attname, ' ', type, CASE WHEN attnotnull THEN ' NOT NULL' END) FROM columns
        UNION ALL
        SELECT pg_catalog.pg_get_indexdef(i.indexrelid)
        FROM tables t JOIN pg_catalog.pg_index i ON i.indrelid = t.oid WHERE i.indisvalid AND i.indisready
        UNION ALL
        SELECT concat('CONSTRAINT ', c.conname, ' ON ', t.relname)
        FROM tables t JOIN pg_catalog.pg_constraint c ON c.conrelid = t.oid WHERE c.contype = 'c' AND c.convalidated
        UNION ALL
        SELECT concat('ROW LEVEL SECURITY ON ', c.relname) FROM tables t JOIN pg_catalog.pg_class c ON c.oid = t.oid
        WHERE c.relrowsecurity
        UNION ALL
        SELECT concat('POLICY ', p.polname, ' ON ', t.relname)
        FROM tables t JOIN pg_catalog.pg_policy p ON p.polrelid = t.oid
        UNION ALL
        SELECT 'GRANT USAGE ON SCHEMA saltern' FROM space, role
        WHERE pg_catalog.has_schema_privilege(role.oid, space.oid, 'USAGE')
        UNION ALL
        SELECT concat('GRANT ', p.privilege, ' ON ', t.relname)
        FROM tables t, role, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (privilege)
        WHERE pg_catalog.has_table_privilege(role.oid, t.oid, p.privilege)
        UNION ALL
        SELECT concat('GRANT ', p.privilege, ' (', c.attname, ') ON ', c.relname)
        FROM columns c, role, unnest(ARRAY['INSERT', 'UPDATE']) AS p (privilege)
        WHERE pg_catalog.has_column_privilege(role.oid, c.oid, c.attnum, p.privilege)
        """

    /// Whose rights are meant; nil for the role that asks.
    let role: String?

    public init(role: String?) { self.role = role }
}
