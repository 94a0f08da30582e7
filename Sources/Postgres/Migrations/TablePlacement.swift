/// Where the rows of a table are when the database is a cluster (Citus).
public struct TablePlacement: Sendable {
    /// Whose rows they are.
    public enum Kind: Sendable, Equatable {
        /// Few, and read with everything else: all of them on every node.
        case everywhere
        /// On the coordinator; the other nodes ask it.
        case onCoordinator
        /// Spread over the nodes by the value of a column; those of equal values in two tables of one companion are
        /// together.
        case spread(by: String, with: String)
    }

    /// The table's name in the schema `saltern`.
    public let table: String
    public let kind: Kind

    /// - Parameters:
    ///   - table: The table's name.
    ///   - kind: Where its rows are.
    public init(_ table: StaticString, _ kind: Kind) {
        self.table = table.description
        self.kind = kind
    }

    /// What places the table, once.
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

    /// What removes the rows that the coordinator has kept of the table as it was before, which nobody sees any more.
    var cleanUp: String { "SELECT truncate_local_data_after_distributing_table('saltern.\(table)')" }

    /// In words, which a cluster is asked for as well.
    public var place: String {
        switch kind {
        case .everywhere: "on every node"
        case .onCoordinator: "on the coordinator"
        case .spread(let column, _): "by \(column)"
        }
    }
}

/// The statements that only a database with Citus understands, and the one that asks whether it is one.
enum PlacementStatements {
    struct HasCitus: Statement {
        typealias Row = Bool
        static let sql: SQL<Self> = "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')"
    }

    /// The schema's tables that are placed already, and those that could be.
    struct FindTables: Statement {
        struct Row: Sendable {
            let table: String
            /// As ``TablePlacement/place``; nil when the table is an ordinary one.
            let placement: String?
            /// Whether the table itself, which is an empty shell when its rows are elsewhere, takes space on the node.
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
