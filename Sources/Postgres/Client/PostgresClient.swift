public import EventLoop

/// A PostgreSQL client for one event loop.
///
/// It has a few pipelined connections for reads, a few for writes, and dedicated ones for transactions. No request
/// waits for a lock on a shared connection: it moves to a dedicated connection instead.
///
/// Every function is called on the loop. The only lock is that of ``RequestKeys``. Call ``shutdown()`` before releasing
/// the last reference.
// Safe to share: every entry checks that it is called on the loop's thread. Only that thread accesses the state.
public final class PostgresClient: @unchecked Sendable {
    /// The maximum number of requests that wait for one key in the process. Further ones fail with
    /// ``PostgresError/queueFull``.
    public static let waitersPerKey = 64

    /// The loop on which the client lives.
    public let loop: EventLoop
    let configuration: PostgresConfiguration
    let resolver: HostResolver
    let keys: RequestKeys
    let epoch: ConnectionEpoch

    var catalog = StatementCatalog()
    var parameters = Parameters()
    var pool: PoolStateMachine<Execution>
    private(set) var connections: [PostgresConnection?]
    private var idleExecutions: [Execution] = []
    var recorder = StatisticsRecorder()
    var later = LaterStatements()
    private(set) lazy var batchFlush = BatchFlush(self)
    private var timer: LoopTimer?
    private var lastProbe = ContinuousClock.now
    private var shutdownContinuations: [UnsafeContinuation<Void, Never>] = []
    private var hasFinished = false
    /// The reason why the last connection could not be opened; `nil` after a success.
    private(set) var failure: ConnectionFailure?

    /// The maximum number of attempts of a request whose neighbours fail. From the second attempt on it is sent alone.
    static let attemptLimit = 4

    /// Makes a client and starts to connect. Statements wait for the first connection.
    /// - Parameters:
    ///   - keys: Shared by the clients of a process, so that a key is in use on one connection at a time.
    ///   - epoch: Shared by the clients of a process, so that all of them leave an unusable server.
    public init(
        configuration: PostgresConfiguration, loop: EventLoop, keys: RequestKeys = RequestKeys(),
        epoch: ConnectionEpoch = ConnectionEpoch()
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

    /// True if at least one connection is ready for statements.
    public var isReady: Bool {
        loop.preconditionInLoop()
        return pool.isReady
    }

    /// True if the server is a cluster node.
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
        // An abandoned execution still has a place in a pipeline.
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

    /// Waits for the outcome, even after a cancellation of the task.
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

    /// Releases the key of an abandoned request. Its reply has arrived, or will never arrive.
    func abandonedRequestEnded(_ execution: Execution) {
        if let key = execution.key { keys.release(key) }
        execution.key = nil
    }

    // MARK: Waiting for connections

    /// The error for requests that cannot be served now.
    func unavailable() -> PostgresError {
        .unavailable(retryAfter: pool.retryDelay(loop.now), because: pool.isReady ? nil : failure)
    }

    /// Waits until the pool grants a connection.
    /// - Returns: `nil` if the connection was lost after the grant.
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

    // MARK: Notifications of connections

    func connectionOpened(_ connection: PostgresConnection) {
        if connection.lane == .probe, connection.serverEnd?.isStandby ?? true { return probeFinished(connection) }
        if connection.lane != .probe { pool.isDistributed = connection.isDistributed }
        guard let onConnected = configuration.onConnected else { return isIntroduced(connection, in: epoch.current) }
        let bound = LoopBound(connection, loop: loop)
        Task(executorPreference: loop) { await self.introduce(bound.value, onConnected) }
    }

    /// Runs ``PostgresConfiguration/onConnected``, then adds the connection to the pool.
    ///
    /// The connection is unused until then, so this may wait for locks. Afterwards its session is like all others.
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
            // If the connection itself has ended, its own reason is reported.
            if connection.isOpen { connectionFailed(.unsuitable(String(describing: error))) }
            demote(host: connection.serverIndex)
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
        // Kept until the slot's next connection: the ended one may still be on the stack.
        let backend = isGivenUp ? connection.serverEnd?.backend : nil
        if let backend { pool.failover.gaveUp(connection.id.slot, backend) }
        let actions = pool.ended(connection.id, now: loop.now, jitter: .random(in: 0...1), isGivenUp: backend != nil)
        perform(actions)
    }

    func report(_ event: PostgresEvent) { configuration.observer?(event) }

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
            case .testCommit(let id): testCommit(on: id)
            case .finished: finish()
            }
        }
        if !hasFinished { scheduleTimer() }
    }

    private func connect(_ id: ConnectionID) {
        pool.failover.opening(id.slot)
        let lane = pool.slots[id.slot].lane
        let probeTarget =
            lane == .probe ? pool.failover.nextProbeTarget(preferred: epoch.preferredServer) : nil
        let connection = PostgresConnection(
            id: id, lane: lane, serverIndex: probeTarget?.serverIndex ?? epoch.preferredServer,
            probeTarget: probeTarget,
            client: self)
        connections[id.slot] = connection
        connection.open()
    }

    private func resume(_ execution: Execution, _ outcome: Execution.Outcome) {
        execution.waiter = nil
        execution.resume(outcome)
    }

    // MARK: Time

    /// The interval of checks of connections, however often the timer is set.
    private static let probeInterval = Duration.milliseconds(250)

    private func timerFired() {
        let now = ContinuousClock.now
        lastProbe = now
        for connection in connections { connection?.checkDeadlines(now: now) }
        keys.expire(now: now)
        if later.isDue(now) { sendLater(now: now) }
        checkGivenUp()
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

    // MARK: End

    /// Rejects new statements, completes pending ones, and closes every connection.
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

/// An event of a client outside of requests. Each change is reported once.
public enum PostgresEvent: Sendable, Hashable {
    /// Connections could not be opened for this reason.
    case cannotConnect(ConnectionFailure)
    /// A connection was opened after a failure.
    case connected
    /// Another server has taken over from a silent one. The connections to that one are closed.
    case takenOver
    /// A commit does not end. Writes are rejected until one does.
    case commitsStalled
    /// Commits end again.
    case commitsResumed
    /// A background statement was rejected with this code.
    case laterStatementRefused(SQLState)
}
