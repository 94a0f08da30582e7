extension PostgresConfiguration {
    var poolSettings: PoolStateMachine<Execution>.Settings {
        PoolStateMachine.Settings(
            readConnections: readConnections, commitConnections: commitConnections,
            leasedConnections: leasedConnections, pipelineDepth: pipelineDepth, queueLimit: queueLimit,
            backOff: backOff, leasedIdleTimeout: leasedIdleTimeout)
    }

    /// The maximum number of simultaneous connections of a client. One of them probes for a takeover.
    public var connectionCount: Int { readConnections + commitConnections + leasedConnections + 1 }

    /// Returns libpq's options. Later keywords take precedence.
    /// - Parameter lane: Added to the application's name, except behind a pooler that exchanges sessions. Such a pooler
    ///   would send the name again whenever a session changes lanes.
    func connectionOptions(for lane: PoolStateMachine<Execution>.Lane? = nil) -> [(keyword: String, value: String)] {
        let told = pooling == .session ? lane.map { " \($0)" } ?? "" : ""
        return [("fallback_application_name", applicationName + told)] + options + [("client_encoding", "UTF8")]
    }
}
