public import EventLoop

/// PostgreSQL as one event loop sees it: a few pipelined connections for requests that read, a few for those that
/// write, and others that transactions have for themselves.
///
/// Nothing waits for a lock on a shared connection: whatever meets one goes on alone, on a connection of its own.
///
/// Every function is called on the loop; the client has no lock but that of ``RequestKeys``. Call ``shutdown()`` before
/// the last reference goes.
// Safe to share: every entry checks that it is called on the loop's thread, which alone touches the state.
public final class PostgresClient: @unchecked Sendable {
    /// How many requests of one key wait for each other, in all of the process, before further ones are refused
    /// (``PostgresError/queueFull``).
    public static let waitersPerKey = 64

    /// The loop that the client lives on.
    public let loop: EventLoop
    let configuration: PostgresConfiguration
    let resolver: HostResolver
    let keys: RequestKeys
    let epoch: ConnectionGeneration

    var catalog = StatementCatalog()
    var parameters = Parameters()
    var pool: PoolStateMachine<Execution>
    private(set) var connections: [PostgresConnection?]
    private var idleExecutions: [Execution] = []
    var recorder = StatisticsRecorder()
    var later = LaterStatements()
    private(set) lazy var batchFlush = BatchFlush(self)
    var givenUp: [Int: Backend] = [:]
    private var asksForGivenUp = false
    private var timer: LoopTimer?
    private var lastProbe = ContinuousClock.now
    private var shutdownContinuations: [UnsafeContinuation<Void, Never>] = []
    private var hasFinished = false
    /// How far from the preferred one the next look for a server that has taken over goes.
    var probeDistance = 1
    /// Why the last connection could not be opened; `nil` after one was.
    private(set) var failure: ConnectionFailure?

    /// How many times a request whose neighbours fail is sent before it is refused; from the second time on alone.
    static let attemptLimit = 4

    /// Makes a client and starts to connect. Statements wait for the first connection.
    /// - Parameters:
    ///   - keys: What the clients of a process share, so that a key is under way on one connection at a time.
    ///   - epoch: What they share, so that all of them leave a server that one has found to be of no use.
    public init(
        configuration: PostgresConfiguration, loop: EventLoop, keys: RequestKeys = RequestKeys(),
        epoch: ConnectionGeneration = ConnectionGeneration()
    ) {
        loop.preconditionInLoop()
        self.loop = loop
        self.keys = keys
        self.epoch = epoch
        self.configuration = configuration
        resolver = HostResolver(loop: loop)
        pool = PoolStateMachine(settings: configuration.poolSettings)
        connections = Array(repeating: nil, count: pool.slots.count)
        timer = LoopTimer(loop: loop) { [unowned self] in timerFired() }
        epoch.join(self) { [weak self] event in loop.schedule { [weak self] in self?.receive(event) } }
        perform(pool.start())
    }

    /// Whether at least one connection is ready for statements.
    public var isReady: Bool {
        loop.preconditionInLoop()
        return pool.isReady
    }

    /// Whether the server is one node of a cluster.
    public var isDistributed: Bool {
        loop.preconditionInLoop()
        return pool.isDistributed
    }

    // MARK: Executions

    func makeExecution() -> Execution {
        let execution = idleExecutions.popLast() ?? Execution()
        execution.reset()
        return execution
    }

    func recycle(_ execution: Execution) {
        // An abandoned one still has a place in a pipeline.
        if execution.isAbandoned { return }
        execution.reset()
        idleExecutions.append(execution)
    }

    func outcome(of execution: Execution) async -> Execution.Outcome {
        let generation = execution.generation
        let bound = LoopBound(execution, loop: loop)
        let begun = loop.now
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { execution.wait(with: $0) }
        } onCancel: {
            loop.schedule { self.abandon(bound.value, generation: generation) }
        }
        record(outcome, of: execution, after: loop.now - begun)
        return outcome
    }

    /// Waits on when the task is cancelled.
    func uninterruptedOutcome(of execution: Execution) async -> Execution.Outcome {
        let begun = loop.now
        let outcome = await withUnsafeContinuation { execution.wait(with: $0) }
        record(outcome, of: execution, after: loop.now - begun)
        return outcome
    }

    func record(_ outcome: Execution.Outcome, of execution: Execution, after duration: Duration) {
        if case .granted(let id) = outcome {
            recorder.granted(pool.slots[id.slot].lane.rawValue, after: duration)
        } else {
            recorder.ended(outcome, statement: execution.statement, after: duration)
        }
    }

    private func abandon(_ execution: Execution, generation: UInt64) {
        guard execution.generation == generation else { return }
        guard let waiter = execution.waiter else { return execution.abandon() }
        guard pool.cancel(waiter) != nil else { return }
        execution.waiter = nil
        execution.resume(.failed(.cancelled))
    }

    /// The server has answered, or will never answer, what was sent for a task that has gone.
    func abandonedRequestEnded(_ execution: Execution) {
        if let key = execution.key { keys.release(key) }
        execution.key = nil
    }

    // MARK: Waiting for connections

    /// The error for those who cannot be served now.
    func unavailable() -> PostgresError {
        .unavailable(retryAfter: pool.retryDelay(loop.now), because: pool.isReady ? nil : failure)
    }

    /// Waits until the pool grants a connection.
    /// - Returns: `nil` when it was lost between the grant and now.
    func granted(
        _ waiter: PoolStateMachine<Execution>.WaiterID, _ actions: [PoolStateMachine<Execution>.Action] = [],
        to execution: Execution
    ) async throws(PostgresError) -> PostgresConnection? {
        execution.waiter = waiter
        perform(actions)
        if actions.isEmpty { scheduleTimer() }
        switch await outcome(of: execution) {
        case .granted(let id):
            guard let connection = connections[id.slot], connection.id == id, connection.isOpen else { return nil }
            return connection
        case .failed(let error): throw error
        case .succeeded, .again: return nil
        }
    }

    func connection(_ id: ConnectionID) -> PostgresConnection? {
        guard let connection = connections[id.slot], connection.id == id, connection.isOpen else { return nil }
        return connection
    }

    // MARK: Told by connections

    func connectionOpened(_ connection: PostgresConnection) {
        if connection.lane == .probe, connection.serverEnd?.isStandby ?? true { return probeFinished(connection) }
        if connection.lane != .probe { pool.isDistributed = connection.isDistributed }
        guard let onConnected = configuration.onConnected else { return isIntroduced(connection, in: epoch.current) }
        let bound = LoopBound(connection, loop: loop)
        Task(executorPreference: loop) { await self.introduce(bound.value, onConnected) }
    }

    /// Gives a connection to the pool when what has to come first has succeeded. Nobody else is on it yet, so that may
    /// wait for locks; afterwards the session is as every other.
    private func introduce(
        _ connection: PostgresConnection, _ body: @Sendable (PostgresLease) async throws -> Void
    ) async {
        let lease = PostgresLease(client: self, connection: connection)
        defer { lease.invalidate() }
        connection.extendTimeouts()
        do {
            try await body(lease)
            if keepsSessions, connection.lane != .probe {
                _ = try await lease.execute(SetUpSession(configuration: configuration))
            }
        } catch {
            if connection.lane == .probe { return connection.end(.lost) }
            // When the connection itself has ended, that says why.
            if connection.isOpen { connectionFailed(.unsuitable(String(describing: error))) }
            demote(host: connection.rotation)
            return connection.end(.lost)
        }
        if connection.isOpen { isIntroduced(connection, in: lease.epoch) }
    }

    private func isIntroduced(_ connection: PostgresConnection, in number: Int) {
        if connection.lane == .probe { return probeFinished(connection) }
        followEpoch()
        connection.epoch = number
        if !connection.isOutdated {
            if failure != nil {
                failure = nil
                report(.connected)
            }
            recorder.opened(connection.lane.rawValue)
        }
        perform(pool.connected(connection.id, of: number, now: loop.now))
    }

    func connectionFailed(_ reason: ConnectionFailure) {
        if failure == reason { return }
        failure = reason
        report(.cannotConnect(reason))
    }

    func connectionEnded(_ connection: PostgresConnection, isGivenUp: Bool) {
        // Kept until the slot's next connection: the one that ended may still be on the stack.
        let backend = isGivenUp ? connection.serverEnd?.backend : nil
        if let backend { givenUp[connection.id.slot] = backend }
        let actions = pool.ended(connection.id, now: loop.now, jitter: .random(in: 0...1), isGivenUp: backend != nil)
        perform(actions)
    }

    func connectionStalled(_ connection: PostgresConnection) {
        changingCommits { perform(pool.stalled(connection.id, now: loop.now)) }
        if pool.commitsAreClosed, !connection.isOutdated { epoch.stall(self, epoch: pool.epoch) }
    }

    func connectionReceived(_ connection: PostgresConnection) {
        changingCommits { pool.received(connection.id) }
    }

    func changingCommits(_ body: () -> Void) {
        let wereClosed = pool.commitsAreClosed
        body()
        if pool.commitsAreClosed != wereClosed { report(wereClosed ? .commitsResumed : .commitsStalled) }
    }

    func report(_ event: PostgresEvent) { configuration.observer?(event) }

    /// A server that does not answer at all would keep libpq from the next one: another is tried first.
    func demote(host rotation: Int) { epoch.avoid(rotation) }

    func connectionIsRetiring(_ connection: PostgresConnection) {
        if let action = pool.retire(connection.id) { perform([action]) }
    }

    func requestEnded(on connection: PostgresConnection) {
        let actions = pool.releaseShared(connection.id)
        if !actions.isEmpty { perform(actions) }
    }

    // MARK: Actions

    func perform(_ actions: [PoolStateMachine<Execution>.Action]) {
        for action in actions {
            switch action {
            case .connect(let id): connect(id)
            case .close(let id): connections[id.slot]?.end(.closed)
            case .grant(let execution, let id): resume(execution, .granted(id))
            case .grantTogether(let members, let id):
                connections[id.slot]?.expectGroup(members.count)
                for execution in members { resume(execution, .granted(id)) }
            case .refuse(let execution, let delay):
                let reason = pool.isReady ? nil : failure
                resume(execution, .failed(.unavailable(retryAfter: delay, because: reason)))
            case .probe(let id): probe(id)
            case .finished: finish()
            }
        }
        if !hasFinished { scheduleTimer() }
    }

    private func connect(_ id: ConnectionID) {
        givenUp[id.slot] = nil
        let lane = pool.slots[id.slot].lane
        let probeTarget = lane == .probe ? nextProbeTarget() : nil
        let connection = PostgresConnection(
            id: id, lane: lane, rotation: probeTarget?.rotation ?? epoch.preferredServer, probeTarget: probeTarget,
            client: self)
        connections[id.slot] = connection
        connection.open()
    }

    private func resume(_ execution: Execution, _ outcome: Execution.Outcome) {
        execution.waiter = nil
        execution.resume(outcome)
    }

    // MARK: Time

    /// How often connections are looked after, however often the timer is set anew.
    private static let probeInterval = Duration.milliseconds(250)

    private func timerFired() {
        let now = ContinuousClock.now
        lastProbe = now
        for connection in connections { connection?.checkDeadlines(now: now) }
        keys.expire(now: now)
        if later.isDue(now) { sendLater(now: now) }
        askForGivenUp()
        perform(pool.advance(to: now))
        probeNextHost(now: now)
    }

    func scheduleTimer() {
        let now = ContinuousClock.now
        var untilNext = lastProbe + Self.probeInterval - now
        if let deadline = pool.nextDeadline { untilNext = min(untilNext, deadline - now) }
        if let due = later.due { untilNext = min(untilNext, due - now) }
        timer?.schedule(after: max(untilNext, .milliseconds(1)))
    }

    /// Asks whether the servers of connections that were given up are gone.
    private func askForGivenUp() {
        guard !givenUp.isEmpty, !asksForGivenUp, pool.isReady else { return }
        asksForGivenUp = true
        let asked = givenUp
        Task(executorPreference: loop) { [self] in
            defer { asksForGivenUp = false }
            guard let found = try? await execute(FindBackends(backends: Array(asked.values))) else { return }
            for (slot, backend) in asked where givenUp[slot] == backend && !found.contains(backend.pid) {
                givenUp[slot] = nil
                perform(pool.backendIsGone(slot, now: loop.now))
            }
        }
    }

    // MARK: End

    /// Refuses new statements, lets those under way finish, and closes every connection.
    public func shutdown() async {
        loop.preconditionInLoop()
        sendLater(now: ContinuousClock.now, limit: .max)
        perform(pool.shutDown())
        if hasFinished { return }
        await withUnsafeContinuation { shutdownContinuations.append($0) }
    }

    private func finish() {
        hasFinished = true
        epoch.leave(self)
        timer?.cancel()
        for continuation in shutdownContinuations { continuation.resume() }
        shutdownContinuations.removeAll()
    }
}
