internal import EventLoop

/// Decides when one client's connections leave their server, and when its writes are rejected.
///
/// - Epochs: the connections of an earlier epoch may lead to a former primary, so they get no further requests.
/// - Probes: while the server is silent, one host after another is probed. A probe that reaches a primary ends the
///   silent connections to other servers. ``ConnectionSilence`` judges each connection.
/// - Commits: after one that does not end, writes are rejected until a commit ends. One test at a time is running.
/// - Server processes: a connection that is given up keeps its slot until its process has ended.
///
/// A process that hangs during the set-up of its connection is not given up. Only the reply to the set-up contains the
/// start time that distinguishes it from other processes, and no request is lost. Its slot connects again after
/// ``PostgresConfiguration/connectTimeout`` and a delay.
///
/// ``ConnectionEpoch`` has the state that all clients of a process share. Pure: the pool and the client pass events in
/// and perform the actions.
struct FailoverMonitor {
    typealias Instant = ContinuousClock.Instant

    /// A step of the client.
    enum Action: Equatable {
        case report(PostgresEvent)
        /// Try this server first, in all clients of the process.
        case prefer(serverIndex: Int)
        /// Begin this epoch in the pool.
        case begin(epoch: Int)
        /// Retire the connection, because another server is the primary.
        case supersede(ConnectionID)
        /// Retry on all slots that wait to connect.
        case retryImmediately
    }

    /// The facts about an ordinary connection.
    struct Peer {
        var id: ConnectionID
        /// The epoch in which it was found usable; until then, later than all others.
        var epoch = Int.max
        /// True if requests can be sent.
        var isOpen = true
        var isSilent = false
        /// Identifies the run of its server, once the server has replied.
        var serverStartedAt: Timestamp?
        /// True if its opening can reach several servers.
        var hasChoice = false

        /// Returns true if it leads, or may lead, to another server than the one started at `start`. With only one
        /// server, a long opening is merely slow.
        fileprivate func isElsewhere(than start: Timestamp) -> Bool { serverStartedAt.map { $0 != start } ?? hasChoice }
    }

    /// The state of a slot's connection.
    private struct Member {
        /// The epoch in which it was found usable.
        var epoch = 0
        /// True if it has been silent for so long that nothing more is sent on it.
        var isStalled = false
    }

    private var members: [Member]
    /// The current epoch. Its connections serve requests.
    private(set) var epoch = 0
    /// True if writes are rejected because a commit does not end.
    private(set) var commitsAreClosed = false
    /// The connection that sends the running test commit.
    private var testingCommits: ConnectionID?
    /// The distance of the next probed server from the preferred one.
    private var probeDistance = 1
    /// The processes behind the connections that were given up, by slot.
    private(set) var givenUp: [Int: Backend] = [:]
    private var isCheckingProcesses = false

    init(slotCount: Int) { members = Array(repeating: Member(), count: slotCount) }

    // MARK: Connections

    /// Handles a new connection.
    /// - Parameter epoch: The epoch in which it was found usable; nil for the current one.
    mutating func opened(_ slot: Int, in epoch: Int?) { members[slot].epoch = epoch ?? self.epoch }

    mutating func ended(_ id: ConnectionID) {
        members[id.slot].isStalled = false
        endTest(id)
    }

    func isStalled(_ slot: Int) -> Bool { members[slot].isStalled }

    // MARK: Epochs

    /// Begins an epoch.
    /// - Returns: False if it is not later than the current one.
    mutating func begin(_ epoch: Int) -> Bool {
        guard epoch > self.epoch else { return false }
        self.epoch = epoch
        return true
    }

    /// Returns true if the slot's connection was found usable in an earlier epoch.
    func isOutdated(_ slot: Int) -> Bool { members[slot].epoch < epoch }

    /// Returns the steps that retire the connections of earlier epochs.
    ///
    /// Idle and silent ones end immediately, the others after their pending requests. Openings may lead to the former
    /// primary.
    func follow(_ current: Int, peers: [Peer]) -> [Action] {
        guard current > epoch else { return [] }
        let left = peers.filter { $0.epoch < current || !$0.isOpen }
        let isTakenOver = left.contains { $0.epoch < current && $0.isSilent }
        return (isTakenOver ? [.report(.takenOver)] : [])
            + [.begin(epoch: current)] + left.map { .supersede($0.id) } + [.retryImmediately]
    }

    // MARK: Probes

    /// The pause after an unsuccessful probe, and after one that has reached a primary.
    static let probePauses = (afterFailure: Duration.milliseconds(200), afterSuccess: Duration.seconds(1))

    /// Returns true if another server has to be probed. After a silence the next probe begins at the nearest one.
    mutating func needsProbe(isAnySilent: Bool) -> Bool {
        if !isAnySilent { probeDistance = 1 }
        return isAnySilent
    }

    /// Returns the server after the last probed one.
    mutating func nextProbeTarget(preferred: Int) -> ProbeTarget {
        defer { probeDistance += 1 }
        return ProbeTarget(preferred: preferred, distance: probeDistance)
    }

    /// Handles a probe that has reached a primary. If any connection to another server is silent, all of those end.
    /// - Parameter start: Identifies the run of the primary.
    mutating func reachedPrimary(_ serverIndex: Int, startedAt start: Timestamp, peers: [Peer]) -> [Action] {
        probeDistance = 1
        var actions = [Action.prefer(serverIndex: serverIndex)]
        let others = peers.filter { $0.isElsewhere(than: start) }
        if others.contains(where: \.isSilent) {
            actions.append(.report(.takenOver))
            actions += others.map { .supersede($0.id) }
        }
        return actions + [.retryImmediately]
    }

    // MARK: Commits

    /// Handles a connection with a commit that does not end.
    /// - Returns: False if that is known.
    mutating func stalled(_ id: ConnectionID) -> Bool {
        if members[id.slot].isStalled { return false }
        members[id.slot].isStalled = true
        endTest(id)
        return true
    }

    /// Returns true if a stall of another client, in `epoch`, also concerns this one. Connections of earlier epochs
    /// have no significance for the current server.
    func followsStall(of epoch: Int) -> Bool { epoch >= self.epoch && !commitsAreClosed }

    mutating func closeCommits() { commitsAreClosed = true }

    /// Handles a reply on a connection, which ends its stall.
    /// - Parameter isCommit: True if that was a commit.
    mutating func received(_ id: ConnectionID, isCommit: Bool) {
        guard members[id.slot].isStalled else { return }
        members[id.slot].isStalled = false
        if isCommit { commitsAreClosed = false }
    }

    /// True if a test commit has to start. While all connections wait for their own commits, those serve as the test.
    var needsTest: Bool { commitsAreClosed && testingCommits == nil }

    mutating func beginTest(_ id: ConnectionID) { testingCommits = id }

    mutating func tested(_ id: ConnectionID, hasCommitted: Bool) {
        endTest(id)
        if hasCommitted { commitsAreClosed = false }
    }

    private mutating func endTest(_ id: ConnectionID) {
        if testingCommits == id { testingCommits = nil }
    }

    // MARK: Server processes

    mutating func gaveUp(_ slot: Int, _ process: Backend) { givenUp[slot] = process }

    /// Handles the opening of a slot's next connection.
    mutating func opening(_ slot: Int) { givenUp[slot] = nil }

    /// Begins a check of the processes behind connections that were given up.
    /// - Returns: The processes by slot; empty if there are none, or while a check is running.
    mutating func beginCheck() -> [Int: Backend] {
        if isCheckingProcesses { return [:] }
        isCheckingProcesses = !givenUp.isEmpty
        return givenUp
    }

    /// Ends a check.
    /// - Parameters:
    ///   - asked: The checked processes.
    ///   - existing: The numbers of those that exist; nil if the check has failed.
    /// - Returns: The slots of ended processes.
    mutating func endCheck(of asked: [Int: Backend], existing: [Int32]?) -> [Int] {
        isCheckingProcesses = false
        guard let existing else { return [] }
        let gone = asked.filter { givenUp[$0.key] == $0.value && !existing.contains($0.value.pid) }
        for slot in gone.keys { givenUp[slot] = nil }
        return Array(gone.keys)
    }
}

/// The host that a probe connects to.
struct ProbeTarget {
    /// The index of the silent server that connections prefer.
    let preferred: Int
    /// The number of servers probed since it became silent, including this one.
    let distance: Int

    /// The server's index.
    var serverIndex: Int { preferred + distance }

    /// Returns true if the probe has the short time limit, so that the next servers are probed soon.
    ///
    /// It then goes to the silent server: another may be behind its address by now. Every fourth such probe has the
    /// full limit, for slow networks.
    func isShort(among count: Int) -> Bool {
        count > 1 && distance.isMultiple(of: count) && !distance.isMultiple(of: 4 * count)
    }
}

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
