import SalternServer

extension PrometheusText {
    /// PostgreSQL's values of `sync_state`.
    private static let kinds = ["sync", "quorum", "potential", "async"]

    /// Writes metrics of PostgreSQL's replication, as far as the server's role may read them.
    mutating func replication(_ state: DatabaseState) {
        single(
            "saltern_database_in_recovery", .gauge, "1 if PostgreSQL is a standby.", state.isInRecovery ? 1 : 0)
        single(
            "saltern_database_followers", .gauge, "Standbys and other receivers of PostgreSQL's log.", state.followers)
        single(
            "saltern_database_standbys_awaited", .gauge, "Standbys that a commit waits for.", state.awaitedStandbys)
        if let bytes = state.replication?.bytesKeptForSlots {
            single(
                "saltern_database_slot_lag_bytes", .gauge,
                "Log that PostgreSQL keeps for the slowest replication slot.", bytes)
        }
        if let standbys = state.replication?.standbys { self.standbys(standbys) }
    }

    private mutating func standbys(_ standbys: [ReplicationState.Standby]) {
        metric("saltern_database_standbys", .gauge, "Connected standbys by synchronisation state.")
        for kind in Self.kinds {
            sample("saltern_database_standbys", labels: ["kind": kind], standbys.count { $0.kind == kind })
        }
        // Several standbys may share a name, and a sample must be unique.
        let named = Dictionary(grouping: standbys, by: \.name).sorted { $0.key < $1.key }
        func write<Value: Numeric & Comparable>(
            _ name: String, _ help: String, _ value: (ReplicationState.Standby) -> Value
        ) {
            metric(name, .gauge, help)
            for (standby, those) in named {
                sample(name, labels: ["standby": standby], those.map(value).max() ?? 0)
            }
        }
        write("saltern_database_standby_lag_bytes", "Log that a standby has not replayed.") { $0.bytesBehind }
        write("saltern_database_standby_lag_seconds", "Age of the changes that a standby replays.") { $0.secondsBehind }
    }
}
