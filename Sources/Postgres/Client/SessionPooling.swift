/// What is between a client and the server.
public enum SessionPooling: Sendable {
    /// Nothing, or a pooler that gives each connection a session of its own for as long as it lasts.
    case session
    /// A pooler that gives each transaction whichever session is free. What one leaves in its session is not there for the
    /// next, and is there for somebody else's: so nothing is left there, limits are defaults of the role, and longer ones
    /// are set in each transaction that may wait.
    case transaction
}

/// Something about sessions that is not as the client was told.
public enum PoolingFinding: Sendable, Hashable, CustomStringConvertible {
    /// There is a pooler that exchanges sessions, and the client was told that there is none.
    case exchangesSessions
    /// A session of this role does not begin with this setting, and nobody sets it afterwards.
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
    /// Whether a connection keeps its session: settings, locks, what was prepared.
    public var keepsSessions: Bool { configuration.pooling == .session }

    /// What is wrong with the sessions that this client gets.
    public func poolingFindings() async throws -> [PoolingFinding] {
        if keepsSessions { return try await seesExchangedSessions() ? [.exchangesSessions] : [] }
        return try await execute(FindDefaults(configuration: configuration)).filter { finding in
            if case .setting(_, _, let value, let needed) = finding { value != needed } else { true }
        }
    }

    /// Asks two connections in turns for their sessions. Poolers give out the session that was free last, or one after the
    /// other: either way two have the same one, or one has two.
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

/// The settings that a session has to begin with where nobody can set them, as they are. Two are those of a cluster: where
/// there is none, one does not exist, and the other one is as it is.
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
