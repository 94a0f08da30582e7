import Postgres
import TransportSecurity

/// Checks whether the nodes of a cluster log values.
///
/// Citus passes statements on with the values in their text. A node that logs the text of statements, on failure or
/// always, logs those values.
enum ClusterLogs {
    static func examine(_ client: PostgresClient) async -> Finding {
        do {
            return judge(try await client.execute(AskNodesForLogs()))
        } catch {
            return Finding(
                "database_log", .warning, "whether the cluster's nodes log statements cannot be asked: \(error)")
        }
    }

    static func judge(_ nodes: [AskNodesForLogs.Row]) -> Finding {
        let silent = nodes.filter { $0.logsText == nil }
        let talking = nodes.filter { $0.logsText == true }
        if !talking.isEmpty {
            return Finding(
                "database_log", .warning,
                "the cluster's nodes send each other statements with values in their text, and \(names(talking)) may write "
                    + "them into the log: ALTER ROLE … SET log_min_error_statement = 'panic' for both roles, and leave "
                    + "log_statement and log_min_duration_statement off")
        }
        if !silent.isEmpty {
            return Finding("database_log", .warning, "whether \(names(silent)) logs statements could not be asked")
        }
        return Finding("database_log", .fine, "none of the cluster's nodes logs statements: \(names(nodes))")
    }

    private static func names(_ nodes: [AskNodesForLogs.Row]) -> String {
        nodes.map(\.name).sorted().joined(separator: ", ")
    }
}

/// Queries every node as the current role, in databases with Citus.
///
/// Standbys have the same roles as their primaries. Their own configuration files are not checked.
struct AskNodesForLogs: Statement {
    struct Row: DecodableRow {
        /// The node's address.
        let name: String
        /// Nil without a reply.
        let logsText: Bool?

        init(name: String, logsText: Bool?) {
            self.name = name
            self.logsText = logsText
        }

        init(row: inout RowReader) throws(PostgresError) {
            name = try row.next()
            logsText = try row.next()
        }
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT n.nodename || ':' || n.nodeport, CASE WHEN r.success THEN r.result = 't' END
        FROM run_command_on_all_nodes($command$
            SELECT current_setting('log_min_error_statement') NOT IN ('log', 'fatal', 'panic')
                OR current_setting('log_min_duration_statement') <> '-1'
                OR current_setting('log_statement') IN ('mod', 'all') $command$) r
            JOIN pg_catalog.pg_dist_node n ON n.nodeid = r.nodeid
        """
}
