import Postgres
import SalternServer

extension PrometheusText {
    /// Writes metrics of the clients of all loops and of the database.
    mutating func database(
        _ statistics: PostgresStatistics, _ keyWaits: PostgresStatistics.KeyWaitCounts, _ state: DatabaseState?
    ) {
        single(
            "saltern_database_up", .gauge,
            "1 if every loop has a connection for statements and the database answers within two seconds.",
            statistics.isReady && state != nil ? 1 : 0)
        if let failure = statistics.failure {
            metric("saltern_database_failure", .gauge, "Reason why connections cannot be opened.")
            sample("saltern_database_failure", labels: ["reason": "\(failure)"], 1)
        }
        single(
            "saltern_database_commits_stalled", .gauge, "1 if writes are rejected because a commit does not end.",
            statistics.commitsAreStalled ? 1 : 0)
        if let state {
            single(
                "saltern_database_schema_version", .gauge, "Latest applied migration.",
                state.schemaVersion)
            replication(state)
        }
        lanes(statistics)
        self.keyWaits(keyWaits)
        statements(statistics.statements)
    }

    private mutating func lanes(_ statistics: PostgresStatistics) {
        typealias Counts = PostgresStatistics.LaneCounts
        func write<Value: Numeric>(_ name: String, _ kind: Kind, _ help: String, _ value: (Counts) -> Value) {
            metric(name, kind, help)
            for lane in PostgresStatistics.Lane.allCases {
                sample(name, labels: ["lane": lane.rawValue], value(statistics.lanes[lane] ?? Counts()))
            }
        }
        write("saltern_database_connections", .gauge, "Open connections.") { $0.open }
        write("saltern_database_in_use", .gauge, "Running requests; for leases, leased connections.") {
            $0.inUse
        }
        write("saltern_database_waiting", .gauge, "Requests waiting for a connection.") { $0.waiting }
        write("saltern_database_connections_opened_total", .counter, "Opened connections.") { $0.opened }
        write("saltern_database_waits_total", .counter, "Requests that waited for a connection.") { $0.waits }
        write("saltern_database_wait_seconds_total", .counter, "Time that requests waited for a connection.") {
            $0.waited / .seconds(1)
        }
    }

    private mutating func keyWaits(_ keyWaits: PostgresStatistics.KeyWaitCounts) {
        single(
            "saltern_database_keys_waiting", .gauge,
            "Requests waiting for an earlier request of the same account, share or userid.", keyWaits.waiting)
        single("saltern_database_key_waits_total", .counter, "Requests that waited for an earlier one.", keyWaits.waits)
        single(
            "saltern_database_key_wait_seconds_total", .counter, "Time that requests waited for an earlier one.",
            keyWaits.waited / .seconds(1))
    }

    private mutating func statements(_ statements: [String: PostgresStatistics.StatementCounts]) {
        let sorted = statements.sorted { $0.key < $1.key }
        func write<Value: Numeric>(
            _ name: String, _ help: String, _ value: (PostgresStatistics.StatementCounts) -> Value
        ) {
            metric(name, .counter, help)
            for (statement, counts) in sorted { sample(name, labels: ["statement": statement], value(counts)) }
        }
        write("saltern_database_requests_total", "Requests to PostgreSQL by statement.") { $0.count }
        write("saltern_database_requests_failed_total", "Failed requests to PostgreSQL by statement.") { $0.failed }
        write("saltern_database_request_seconds_total", "Time from sending a request to its last reply, by statement.")
        {
            $0.duration / .seconds(1)
        }
    }
}

extension PrometheusText {
    /// PostgreSQL's values of `sync_state`.
    private static let kinds = ["sync", "quorum", "potential", "async"]

    /// Writes metrics of PostgreSQL's replication, as far as the server's role may read them.
    private mutating func replication(_ state: DatabaseState) {
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
