extension PostgresConfiguration {
    var poolSettings: PoolStateMachine<Execution>.Settings {
        PoolStateMachine.Settings(
            readConnections: readConnections, commitConnections: commitConnections,
            leasedConnections: leasedConnections, pipelineDepth: pipelineDepth, queueLimit: queueLimit,
            backOff: backOff, leasedIdleTimeout: leasedIdleTimeout)
    }

    /// The most connections that a client opens at a time.
    public var connectionCount: Int { readConnections + commitConnections + leasedConnections }

    /// What libpq is given: later keywords win.
    var connectionOptions: [(keyword: String, value: String)] {
        [("fallback_application_name", applicationName)] + options + [("client_encoding", "UTF8")]
    }
}
