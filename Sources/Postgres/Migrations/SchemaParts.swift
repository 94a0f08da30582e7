/// The parts that migrations create: columns, indexes, checks, policies, and rights of the server's role.
///
/// Each part is a line of ``FindSchemaParts``, in SQL words, so that an operator can restore a missing one.
public struct SchemaParts: Sendable {
    let lines: [String]

    /// - Parameter text: A line for each part.
    public init(_ text: String) { lines = text.split(separator: "\n").map(String.init) }

    /// Returns the parts that a database lacks.
    /// - Parameter found: The parts that it has, possibly more.
    func missing(from found: [String]) -> [String] {
        let found = Set(found)
        return lines.filter { !found.contains($0) }
    }
}

/// Returns the usable parts of the schema `saltern`. Rights include inherited ones of the role.
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

    /// The role to check; nil for the current one.
    let role: String?

    public init(role: String?) { self.role = role }
}
