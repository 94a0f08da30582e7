extension PostgresConfiguration {
    var poolSettings: PoolStateMachine.Settings {
        PoolStateMachine.Settings(
            sharedConnections: sharedConnections, leasedConnections: leasedConnections, pipelineDepth: pipelineDepth,
            queueLimit: queueLimit, backOff: backOff, leasedIdleTimeout: leasedIdleTimeout)
    }

    /// What libpq is given: later keywords win.
    var connectionOptions: [(keyword: String, value: String)] {
        [("fallback_application_name", applicationName)] + options + [("client_encoding", "UTF8")]
    }
}
