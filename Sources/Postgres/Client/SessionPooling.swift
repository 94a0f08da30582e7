/// The kind of pooling between a client and the server.
public enum SessionPooling: Sendable {
    /// No pooler, or one that gives each connection a permanent session of its own.
    case session
    /// A pooler that gives each transaction any free session.
    ///
    /// State left in a session is lost to its client and visible to others, so nothing is left there. Limits are
    /// defaults of the role, and each transaction that may wait sets longer ones.
    case transaction
}

/// A difference between the configured and the actual sessions.
public enum PoolingFinding: Sendable, Hashable, CustomStringConvertible {
    /// A pooler exchanges sessions, and the configuration has none.
    case exchangesSessions
    /// Sessions of this role start with another value of this setting, and nothing changes it later.
    case setting(role: String, name: String, value: String, needed: String)

    public var description: String {
        switch self {
        case .exchangesSessions: "a pooler gives each transaction another session"
        case .setting(let role, let name, let value, let needed):
            "\(name) is '\(value)' in a session of the role \(role): ALTER ROLE \(role) SET \(name) = \(needed)"
        }
    }
}

extension PostgresClient {
    /// True if a connection keeps its session: settings, locks, prepared statements.
    public var keepsSessions: Bool { configuration.pooling == .session }

    /// Checks this client's sessions against the configuration.
    public func poolingFindings() async throws -> [PoolingFinding] {
        if keepsSessions { return try await seesExchangedSessions() ? [.exchangesSessions] : [] }
        return try await execute(FindDefaults(configuration: configuration)).filter { finding in
            if case .setting(_, _, let value, let needed) = finding { value != needed } else { true }
        }
    }

    /// Compares the sessions of two connections in alternation.
    ///
    /// Poolers assign the session that became free last, or sessions in rotation. Either way the two connections share
    /// a session, or one has two.
    private func seesExchangedSessions() async throws -> Bool {
        try await withConnection { first in
            try await withConnection { second in
                var sessions: [Set<Int32>] = [[], []]
                for (index, lease) in [(0, first), (0, first), (1, second), (1, second), (0, first), (1, second)] {
                    sessions[index].formUnion(try await lease.execute(FindSession()))
                }
                return sessions[0].count > 1 || sessions[1].count > 1 || sessions[0] == sessions[1]
            }
        }
    }
}

private struct FindSession: Statement {
    typealias Row = Int32

    static let sql: SQL<Self> = "SELECT pg_backend_pid()"
}

/// Returns the settings that sessions must start with where they cannot be set later, with their values.
///
/// Two settings matter on a cluster only. Elsewhere one does not exist, and the other may have any value.
private struct FindDefaults: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT quote_ident(current_user), needed.name, s.setting, needed.setting
        FROM pg_settings s JOIN (VALUES
            ('statement_timeout', \(\.configuration.statementTimeout.setting)),
            ('lock_timeout', \(\.configuration.sharedLockTimeout.setting)),
            ('idle_in_transaction_session_timeout', \(\.configuration.idleInTransactionTimeout.setting)),
            ('search_path', \(\.configuration.searchPath)),
            ('enable_bitmapscan', 'off'), ('jit', 'off'), ('citus.propagate_set_commands', 'local'),
            ('row_security', 'on'), ('standard_conforming_strings', 'on'), ('transform_null_equals', 'off'),
            ('plan_cache_mode', 'force_custom_plan')) AS needed (name, setting) USING (name)
        WHERE needed.name <> 'plan_cache_mode' OR EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')
        ORDER BY needed.name
        """

    let configuration: PostgresConfiguration

    static func decode(_ row: inout RowReader) throws(PostgresError) -> PoolingFinding {
        .setting(role: try row.next(), name: try row.next(), value: try row.next(), needed: try row.next())
    }
}
