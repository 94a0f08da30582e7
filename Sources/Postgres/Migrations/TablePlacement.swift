/// The placement of a table's rows in a cluster (Citus).
public struct TablePlacement: Sendable {
    /// The way in which rows are distributed.
    public enum Kind: Sendable, Equatable {
        /// All rows on every node: for few rows that are read with everything else.
        case everywhere
        /// On the coordinator. The other nodes fetch them from there.
        case onCoordinator
        /// Distributed over the nodes by the value of a column. Tables of one companion keep rows of equal values
        /// together.
        case spread(by: String, with: String)
    }

    /// The table's name in the schema `saltern`.
    public let table: String
    public let kind: Kind

    /// - Parameters:
    ///   - table: The table's name.
    ///   - kind: The distribution of its rows.
    public init(_ table: StaticString, _ kind: Kind) {
        self.table = table.description
        self.kind = kind
    }

    /// SQL that places the table. Run it once.
    var script: String {
        let name = "'saltern.\(table)'"
        return switch kind {
        case .everywhere: "SELECT create_reference_table(\(name))"
        case .onCoordinator: "SELECT citus_add_local_table_to_metadata(\(name))"
        case .spread(let column, let companion):
            "SELECT create_distributed_table(\(name), '\(column)', colocate_with => "
                + (companion == table ? "'none'" : "'saltern.\(companion)'") + ")"
        }
    }

    /// SQL that removes the coordinator's invisible rows from before the placement.
    var cleanUp: String { "SELECT truncate_local_data_after_distributing_table('saltern.\(table)')" }

    /// A description, which queries of a cluster return as well.
    public var place: String {
        switch kind {
        case .everywhere: "on every node"
        case .onCoordinator: "on the coordinator"
        case .spread(let column, _): "by \(column)"
        }
    }
}

/// The statements that require Citus, and the one that checks for it.
enum PlacementStatements {
    struct HasCitus: Statement {
        typealias Row = Bool
        static let sql: SQL<Self> = "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')"
    }

    /// The schema's tables, with their placement.
    struct FindTables: Statement {
        struct Row: Sendable {
            let table: String
            /// As ``TablePlacement/place``; nil for an ordinary table.
            let placement: String?
            /// True if the table itself occupies space on the node. A placed table with rows elsewhere is normally
            /// empty.
            let keepsRows: Bool
        }

        static let sql: SQL<Self> = """
            SELECT c.relname::text, CASE
                WHEN p.partmethod = 'n' AND p.repmodel = 't' THEN 'on every node'
                WHEN p.partmethod = 'n' THEN 'on the coordinator'
                WHEN p.logicalrelid IS NOT NULL
                    THEN 'by ' || pg_catalog.column_to_column_name(p.logicalrelid, p.partkey) END,
                pg_catalog.pg_relation_size(c.oid) > 0
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid = c.oid
            WHERE n.nspname = 'saltern' AND c.relkind = 'r'
            """

        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
    }
}
