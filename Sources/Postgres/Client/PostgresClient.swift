public import EventLoop

/// PostgreSQL as one event loop sees it: a few pipelined connections that the loop's requests share, and others
/// that transactions have for themselves.
///
/// Every function is called on the loop; the client has no lock. Call ``shutdown()`` before the last reference goes.
// Safe to share: every entry checks that it is called on the loop's thread, which alone touches the state.
public final class PostgresClient: @unchecked Sendable {
    /// The loop that the client lives on.
    public let loop: EventLoop
    let configuration: PostgresConfiguration

    var catalog = StatementCatalog()
    var parameters = Parameters()
    private var pool: PoolStateMachine
    private var connections: [PostgresConnection?]
    private var waiting: [PoolStateMachine.WaiterID: Execution] = [:]
    private var idleExecutions: [Execution] = []
    private var timer: LoopTimer?
    private var shutdownContinuations: [UnsafeContinuation<Void, Never>] = []
    private var hasFinished = false
    /// A server that does not answer at all would keep libpq from the next one: each time another is tried first.
    private var timedOutOpenings = 0

    /// How many times a request whose neighbours fail is sent before it is refused; from the second time on alone.
    private static let attemptLimit = 4

    /// Makes a client and starts to connect. Statements wait for the first connection.
    public init(configuration: PostgresConfiguration, loop: EventLoop) {
        loop.preconditionInLoop()
        self.loop = loop
        self.configuration = configuration
        pool = PoolStateMachine(settings: configuration.poolSettings)
        connections = Array(repeating: nil, count: configuration.sharedConnections + configuration.leasedConnections)
        timer = LoopTimer(loop: loop) { [unowned self] in timerFired() }
        perform(pool.start())
    }

    /// Whether at least one connection is ready for statements.
    public var isReady: Bool {
        loop.preconditionInLoop()
        return pool.isReady
    }

    // MARK: Statements

    /// Sends one statement, closed by its own sync, and returns its rows.
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        let execution = try await perform(isReadOnly: S.isReadOnly) { connection, execution in
            connection.send(statement, for: execution)
        }
        defer { recycle(execution) }
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// Sends several statements together, closed by one sync: one round trip, one transaction, all or nothing.
    public func execute<each S: Statement>(
        _ statement: repeat each S
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        var isReadOnly = true
        for isOneReadOnly in repeat (each S).isReadOnly { isReadOnly = isReadOnly && isOneReadOnly }
        let execution = try await perform(isReadOnly: isReadOnly) { connection, execution in
            repeat connection.send(each statement, for: execution)
        }
        defer { recycle(execution) }
        var index = 0
        return (repeat try execution.takeNextRows(of: (each S).self, after: &index))
    }

    /// Sends a request on a shared connection, again if neighbours made it fail, and waits for its end.
    private func perform(
        isReadOnly: Bool, send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        loop.preconditionInLoop()
        let execution = idleExecutions.popLast() ?? Execution()
        execution.reset()
        for attempt in 0..<Self.attemptLimit {
            let connection = try await sharedConnection(for: execution)
            connection.beginRequest(isReadOnly: isReadOnly && attempt == 0)
            send(connection, execution)
            switch await outcome(of: execution) {
            case .succeeded: return execution
            case .failed(let error):
                recycle(execution)
                throw error
            case .again, .granted: execution.prepareToRepeat()
            }
        }
        throw .unavailable(retryAfter: .seconds(1))
    }

    private func sharedConnection(for execution: Execution) async throws(PostgresError) -> PostgresConnection {
        if let id = pool.acquireShared(), let connection = connections[id.slot], connection.isOpen { return connection }
        let deadline = ContinuousClock.now + configuration.acquireTimeout
        while true {
            guard let waiter = pool.waitForShared(until: deadline) else {
                throw .unavailable(retryAfter: pool.retryDelay(loop.now))
            }
            if let connection = try await granted(waiter, to: execution) { return connection }
        }
    }

    /// Waits until the pool grants a connection.
    /// - Returns: `nil` when it was lost between the grant and now.
    private func granted(
        _ waiter: PoolStateMachine.WaiterID, to execution: Execution
    ) async throws(PostgresError) -> PostgresConnection? {
        execution.waiter = waiter
        waiting[waiter] = execution
        scheduleTimer()
        switch await outcome(of: execution) {
        case .granted(let id):
            guard let connection = connections[id.slot], connection.id == id, connection.isOpen else { return nil }
            return connection
        case .failed(let error): throw error
        case .succeeded, .again: return nil
        }
    }

    private func outcome(of execution: Execution) async -> Execution.Outcome {
        let generation = execution.generation
        let bound = LoopBound(execution, loop: loop)
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { execution.wait(with: $0) }
        } onCancel: {
            loop.schedule { self.abandon(bound.value, generation: generation) }
        }
    }

    private func abandon(_ execution: Execution, generation: UInt64) {
        guard execution.generation == generation else { return }
        if let waiter = execution.waiter, pool.cancel(waiter) {
            waiting[waiter] = nil
            execution.waiter = nil
        }
        execution.abandon()
    }

    private func recycle(_ execution: Execution) {
        // An abandoned one still has a place in a pipeline.
        if execution.isAbandoned { return }
        execution.reset()
        idleExecutions.append(execution)
    }

    // MARK: Leases

    /// A connection for the caller alone, until ``release(_:reusable:)``.
    func lease() async throws(PostgresError) -> PostgresConnection {
        loop.preconditionInLoop()
        let execution = Execution()
        let deadline = ContinuousClock.now + configuration.acquireTimeout
        while true {
            guard let (waiter, actions) = pool.waitForLease(until: deadline) else {
                throw .unavailable(retryAfter: pool.retryDelay(loop.now))
            }
            execution.waiter = waiter
            waiting[waiter] = execution
            perform(actions)
            if let connection = try await granted(waiter, to: execution) { return connection }
        }
    }

    func release(_ connection: PostgresConnection, reusable: Bool) {
        perform(
            pool.releaseLease(
                connection.id, reusable: reusable && connection.isOpen && !connection.isRetiring, now: loop.now))
    }

    /// Sends a request on a leased connection and waits for its end.
    func perform(
        on connection: PostgresConnection, ignoringCancellation: Bool = false, send: (Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        loop.preconditionInLoop()
        guard connection.isOpen else { throw .connectionLost }
        let execution = idleExecutions.popLast() ?? Execution()
        execution.reset()
        connection.beginRequest(isReadOnly: false)
        send(execution)
        let outcome =
            if ignoringCancellation {
                await withUnsafeContinuation { execution.wait(with: $0) }
            } else {
                await outcome(of: execution)
            }
        switch outcome {
        case .succeeded: return execution
        case .failed(let error):
            recycle(execution)
            throw error
        case .again, .granted: throw .connectionLost
        }
    }

    func finish(_ execution: Execution) { recycle(execution) }

    // MARK: Told by connections

    func connectionOpened(_ connection: PostgresConnection) {
        perform(pool.connected(connection.id, now: loop.now))
    }

    func connectionEnded(_ connection: PostgresConnection) {
        // Kept until the slot's next connection: the one that ended may still be on the stack.
        perform(pool.ended(connection.id, now: loop.now, jitter: .random(in: 0...1)))
    }

    func openingTimedOut() { timedOutOpenings += 1 }

    func connectionIsRetiring(_ connection: PostgresConnection) {
        if let action = pool.retire(connection.id) { perform([action]) }
    }

    func requestEnded(on connection: PostgresConnection) {
        switch pool.releaseShared(connection.id) {
        case .grant(let waiter, let id): resume(waiter, .granted(id))
        case let action?: perform([action])
        case nil: break
        }
    }

    // MARK: Actions

    private func perform(_ actions: [PoolStateMachine.Action]) {
        for action in actions {
            switch action {
            case .connect(let id): connect(id)
            case .close(let id): connections[id.slot]?.end(.closed)
            case .grant(let waiter, let id): resume(waiter, .granted(id))
            case .refuse(let waiter, let delay): resume(waiter, .failed(.unavailable(retryAfter: delay)))
            case .finished: finish()
            }
        }
        if !hasFinished { scheduleTimer() }
    }

    private func connect(_ id: PoolStateMachine.ConnectionID) {
        let connection = PostgresConnection(id: id, client: self)
        connections[id.slot] = connection
        connection.open(rotation: timedOutOpenings)
    }

    private func resume(_ waiter: PoolStateMachine.WaiterID, _ outcome: Execution.Outcome) {
        guard let execution = waiting.removeValue(forKey: waiter) else { return }
        execution.waiter = nil
        execution.resume(outcome)
    }

    // MARK: Time

    private func timerFired() {
        let now = ContinuousClock.now
        for connection in connections { connection?.checkDeadlines(now: now) }
        perform(pool.advance(to: now))
    }

    private func scheduleTimer() {
        let untilNext = pool.nextDeadline.map { $0 - ContinuousClock.now } ?? .seconds(1)
        timer?.schedule(after: min(max(untilNext, .milliseconds(1)), .seconds(1)))
    }

    // MARK: End

    /// Refuses new statements, lets those under way finish, and closes every connection.
    public func shutdown() async {
        loop.preconditionInLoop()
        perform(pool.shutDown())
        if hasFinished { return }
        await withUnsafeContinuation { shutdownContinuations.append($0) }
    }

    private func finish() {
        hasFinished = true
        timer?.cancel()
        for continuation in shutdownContinuations { continuation.resume() }
        shutdownContinuations.removeAll()
    }
}
