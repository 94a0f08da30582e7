extension PostgresConfiguration {
    var poolSettings: PoolStateMachine<Execution>.Settings {
        PoolStateMachine.Settings(
            readConnections: readConnections, commitConnections: commitConnections,
            leasedConnections: leasedConnections, pipelineDepth: pipelineDepth, queueLimit: queueLimit,
            backOff: backOff, leasedIdleTimeout: leasedIdleTimeout)
    }

    /// The most connections that a client opens at a time; one of them looks whether another server has taken over.
    public var connectionCount: Int { readConnections + commitConnections + leasedConnections + 1 }

    /// What libpq is given: later keywords win.
    /// - Parameter lane: What the connection is for. It is told to the server, but not to a pooler that exchanges sessions:
    ///   that would tell the server anew whenever a session goes from one lane to another.
    func connectionOptions(for lane: PoolStateMachine<Execution>.Lane? = nil) -> [(keyword: String, value: String)] {
        let told = pooling == .session ? lane.map { " \($0)" } ?? "" : ""
        return [("fallback_application_name", applicationName + told)] + options + [("client_encoding", "UTF8")]
    }
}
