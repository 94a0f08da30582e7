internal import EventLoop

extension PostgresClient {
    /// Sends one statement, closed by its own sync, and returns its rows.
    /// - Parameter key: What it locks or writes; statements that only read need none.
    public func execute<S: Statement>(
        _ statement: S, key: RequestKey? = nil
    ) async throws(PostgresError) -> [S.Row] {
        let execution = try await perform(isReadOnly: S.isReadOnly, key: key, type: ObjectIdentifier(S.self)) {
            $0.send(statement, for: $1)
        }
        defer { recycle(execution) }
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// Sends several statements together, closed by one sync: one round trip, one transaction, all or nothing.
    /// - Parameter key: What they lock or write; statements that only read need none.
    public func execute<each S: Statement>(
        _ statement: repeat each S, key: RequestKey? = nil
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        var isReadOnly = true
        var type: ObjectIdentifier?
        for one in repeat (each S).self {
            isReadOnly = isReadOnly && one.isReadOnly
            type = type ?? ObjectIdentifier(one)
        }
        let execution = try await perform(isReadOnly: isReadOnly, key: key, type: type) { connection, execution in
            repeat connection.send(each statement, for: execution)
        }
        defer { recycle(execution) }
        var index = 0
        return (repeat try execution.takeNextRows(of: (each S).self, after: &index))
    }

    /// Sends a request on a shared connection, again if neighbours made it fail, then on one of its own if it met a
    /// lock, and waits for its end.
    private func perform(
        isReadOnly: Bool, key: RequestKey?, type: ObjectIdentifier?, send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        loop.preconditionInLoop()
        let deadline = loop.now + configuration.acquireTimeout
        var route = KeyTable<KeyWaiter>.Route.shared
        if let key { route = try await hold(key, until: deadline) }
        let execution = makeExecution()
        execution.key = key
        if case .shared = route {
            do throws(PostgresError) {
                try await performShared(execution, isReadOnly: isReadOnly, until: deadline, send)
                letGo(execution)
                return execution
            } catch {
                // Whoever is told that his task was cancelled has left the key to the request.
                guard !execution.isAbandoned else { throw error }
                guard error.wantsLease else {
                    letGo(execution)
                    recycle(execution)
                    throw error
                }
                if let key, error.sqlState == .lockNotAvailable { keys.mark(key) }
            }
            execution.prepareToRepeat()
        }
        // One at a time of each kind, so that a lock which many meet takes one lease of a process.
        if execution.key == nil, let type {
            let key = RequestKey(statement: type)
            do throws(PostgresError) { _ = try await hold(key, until: deadline) } catch {
                recycle(execution)
                throw error
            }
            execution.key = key
        }
        return try await performLeased(execution, until: deadline, send)
    }

    private func letGo(_ execution: Execution) {
        if let key = execution.key { keys.release(key) }
        execution.key = nil
    }

    private func performShared(
        _ execution: Execution, isReadOnly: Bool, until deadline: ContinuousClock.Instant,
        _ send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) {
        let lane: PoolStateMachine<Execution>.Lane =
            isReadOnly && configuration.readConnections > 0 ? .reads : .commits
        for attempt in 0..<Self.attemptLimit {
            let connection = try await sharedConnection(lane, for: execution, until: deadline)
            connection.beginRequest(isReadOnly: isReadOnly && attempt == 0)
            execution.commits = !isReadOnly
            send(connection, execution)
            switch await outcome(of: execution) {
            case .succeeded: return
            case .failed(let error): throw error
            case .again, .granted: execution.prepareToRepeat()
            }
        }
        throw .unavailable(retryAfter: .seconds(1))
    }

    private func sharedConnection(
        _ lane: PoolStateMachine<Execution>.Lane, for execution: Execution, until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> PostgresConnection {
        if let id = pool.acquireShared(lane), let connection = connection(id) { return connection }
        while true {
            guard let waiter = pool.waitForShared(execution, lane, until: deadline) else { throw unavailable() }
            if let connection = try await granted(waiter, to: execution) { return connection }
        }
    }

    /// Sends the request as a transaction of its own on a connection of its own, all in one flush. The request's key
    /// goes with it.
    private func performLeased(
        _ execution: Execution, until deadline: ContinuousClock.Instant,
        _ send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        let key = execution.key
        execution.key = nil
        let held = HeldKeys(key: key)
        let connection: PostgresConnection
        do throws(PostgresError) {
            connection = try await lease(.short, for: execution, until: deadline)
        } catch {
            letGo(held)
            recycle(execution)
            throw error
        }
        for _ in 0..<Self.attemptLimit {
            connection.beginRequest(isReadOnly: false)
            execution.commits = true
            execution.firstResult = TransactionIsolation.readCommitted.begin(
                on: connection, for: execution, configuration)
            send(connection, execution)
            connection.send(Commit(), for: execution)
            switch await outcome(of: execution) {
            case .succeeded:
                release(connection, reusable: true)
                letGo(held)
                return execution
            case .failed(let error):
                giveBack(connection, held)
                recycle(execution)
                throw error
            case .again, .granted:
                rollBack(connection)
                execution.prepareToRepeat()
            }
        }
        giveBack(connection, held)
        recycle(execution)
        throw .unavailable(retryAfter: .seconds(1))
    }
}

extension PostgresError {
    /// Whether the request may succeed on a connection where it can wait.
    fileprivate var wantsLease: Bool {
        switch sqlState {
        case .lockNotAvailable, .deadlockDetected, .serializationFailure: true
        default: false
        }
    }
}
