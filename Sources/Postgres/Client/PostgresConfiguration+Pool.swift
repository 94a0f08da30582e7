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
    var connectionOptions: [(keyword: String, value: String)] {
        [("fallback_application_name", applicationName)] + options + [("client_encoding", "UTF8")]
    }
}
