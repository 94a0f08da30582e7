internal import EventLoop

/// Passes events to the client's ``FailoverMonitor``, which is part of its pool, and performs the actions.
extension PostgresClient {
    private func perform(_ actions: [FailoverMonitor.Action]) {
        let now = loop.now
        for action in actions {
            switch action {
            case .report(let event): report(event)
            case .prefer(let serverIndex): epoch.prefer(serverIndex)
            case .begin(let epoch): perform(pool.begin(epoch))
            case .supersede(let id):
                if let connection = connections[id.slot], connection.id == id { connection.supersede(now: now) }
            case .retryImmediately: perform(pool.retryImmediately())
            }
        }
    }

    /// The facts about all connections but the probe.
    private var peers: [FailoverMonitor.Peer] {
        let now = loop.now
        return connections.compactMap { $0 }.filter { $0.lane != .probe }.map { $0.peer(now: now) }
    }

    // MARK: Epochs

    /// Handles a notification of another client of the process.
    func receive(_ event: ConnectionEpoch.Event) {
        followEpoch()
        if case .stalled(let epoch) = event, pool.failover.followsStall(of: epoch) {
            changingCommits { perform(pool.closeCommits(now: loop.now)) }
        }
    }

    /// Retires the connections of earlier epochs. Commits of those are in doubt.
    func followEpoch() {
        let current = epoch.current
        if current > pool.epoch { perform(pool.failover.follow(current, peers: peers)) }
    }

    // MARK: Probes

    /// Probes one server after another while any connection is silent.
    ///
    /// The new primary is a promoted standby, behind another host of the connection string or behind the same name.
    func probeNextHost(now: ContinuousClock.Instant) {
        let isAnySilent = connections.contains { $0.map { $0.lane != .probe && $0.isSilent(now) } ?? false }
        guard pool.failover.needsProbe(isAnySilent: isAnySilent), let action = pool.probeOtherHost() else { return }
        perform([action])
    }

    /// Handles the success of a probe, which has reached a primary or a standby.
    func probeFinished(_ probe: PostgresConnection) {
        if let found = probe.serverEnd, !found.isStandby {
            perform(
                pool.failover.reachedPrimary(probe.serverIndex, startedAt: found.serverStartedAt, peers: peers))
        }
        perform(pool.connected(probe.id, now: loop.now))
    }

    /// Demotes a server that does not reply at all: libpq would not get to the next one.
    func demote(host serverIndex: Int) { epoch.avoid(serverIndex) }

    // MARK: Commits

    func connectionStalled(_ connection: PostgresConnection) {
        changingCommits { perform(pool.stalled(connection.id, now: loop.now)) }
        if pool.commitsAreClosed, !connection.isOutdated { epoch.stall(self, epoch: pool.epoch) }
    }

    func connectionReceived(_ connection: PostgresConnection) {
        changingCommits { pool.received(connection.id) }
    }

    private func changingCommits(_ body: () -> Void) {
        let wereClosed = pool.commitsAreClosed
        body()
        if pool.commitsAreClosed != wereClosed { report(wereClosed ? .commitsResumed : .commitsStalled) }
    }

    /// Tests by a commit without trace whether commits end again. The connection has a place reserved for it.
    func testCommit(on id: ConnectionID) {
        guard let connection = connection(id) else { return }
        let execution = Execution()
        execution.commits = true
        execution.completion = { [unowned self] outcome in
            var hasCommitted = false
            if case .succeeded = outcome { hasCommitted = true }
            changingCommits { pool.commitTested(id, hasCommitted: hasCommitted) }
        }
        connection.beginRequest(isReadOnly: false)
        connection.send(WriteNothing(), for: execution)
    }

    // MARK: Server processes

    /// The processes behind connections that were given up, by slot.
    var givenUp: [Int: Backend] { pool.failover.givenUp }

    /// Checks whether the server processes of closed connections are gone.
    func checkGivenUp() {
        guard !givenUp.isEmpty, pool.isReady else { return }
        let asked = pool.failover.beginCheck()
        if asked.isEmpty { return }
        Task(executorPreference: loop) { [self] in
            let existing = try? await execute(FindBackends(backends: Array(asked.values)))
            for slot in pool.failover.endCheck(of: asked, existing: existing) {
                perform(pool.backendIsGone(slot, now: loop.now))
            }
        }
    }
}

/// Writes a message without readers into the log, so that its commit has something to wait for.
private struct WriteNothing: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "SELECT pg_logical_emit_message(true, 'saltern', '')"
}

/// Returns the given server processes that still exist. It ends idle ones, which have no client. Active ones continue,
/// since one may be committing.
struct FindBackends: Statement {
    typealias Row = Int32

    /// It commits nothing, and has to run while writes are rejected because of such processes.
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.pid, CASE WHEN a.state LIKE 'idle%' THEN pg_terminate_backend(a.pid) END
        FROM pg_stat_activity a JOIN unnest(\(\.pids), \(\.starts)) AS known (pid, backend_start)
            USING (pid, backend_start)
        """
    let backends: [Backend]

    private var known: [Backend] { backends.filter { $0.startedAt != nil } }
    private var pids: [Int32] { known.map(\.pid) }
    private var starts: [Timestamp] { known.compactMap(\.startedAt) }
}
