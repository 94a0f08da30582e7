internal import EventLoop

extension PostgresClient {
    /// Sends one statement, closed by its own sync, and returns its rows.
    /// - Parameter key: What it locks or writes; statements that only read need none.
    public func execute<S: Statement>(
        _ statement: S, key: RequestKey? = nil
    ) async throws(PostgresError) -> [S.Row] {
        var kind = RequestKind()
        kind.add(statement)
        let execution = try await perform(kind, key: key) { $0.send(statement, for: $1) }
        defer { recycle(execution) }
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// Sends several statements together, closed by one sync: one round trip, one transaction, all or nothing.
    /// - Parameter key: What they lock or write; statements that only read need none.
    public func execute<each S: Statement>(
        _ statement: repeat each S, key: RequestKey? = nil
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        var kind = RequestKind()
        for one in repeat each statement { kind.add(one) }
        let execution = try await perform(kind, key: key) { connection, execution in
            repeat connection.send(each statement, for: execution)
        }
        defer { recycle(execution) }
        var index = 0
        return (repeat try execution.takeNextRows(of: (each S).self, after: &index))
    }

    /// Sends a request on a shared connection, again if neighbours made it fail, then on one of its own if it met a
    /// lock, and waits for its end.
    private func perform(
        _ kind: RequestKind, key: RequestKey?, send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        loop.preconditionInLoop()
        followEpoch()
        // Nobody waits for the turn of a key whose request does not end.
        try checkCommits(kind)
        let deadline = loop.now + configuration.acquireTimeout
        var route = KeyTable<KeyWaiter>.Route.shared
        let joinsGroup = kind.bytesInGroup != nil && key != nil
        if let key { route = try await hold(key, joinsGroup: joinsGroup, until: deadline) }
        let execution = makeExecution()
        execution.key = key
        if route != .lease {
            do throws(PostgresError) {
                try await performShared(execution, kind, route, until: deadline, send)
                letGo(execution)
                return execution
            } catch {
                // Whoever is told that his task was cancelled has left the key to the request.
                guard !execution.isAbandoned else { throw error }
                guard error.wantsLease else {
                    giveUp(execution)
                    throw error
                }
                if let key, error.sqlState == .lockNotAvailable { keys.mark(key) }
                do throws(PostgresError) { try requireTime(until: deadline) } catch {
                    giveUp(execution)
                    throw error
                }
            }
            execution.prepareToRepeat()
        }
        // One at a time of each key, and of each kind that has none: so that a lock which many meet takes one lease of a
        // process.
        let isShared = route == .together
        if isShared { letGo(execution) }
        if isShared || execution.key == nil, let key = key ?? kind.type.map(RequestKey.init(statement:)) {
            do throws(PostgresError) { _ = try await hold(key, until: deadline) } catch {
                giveUp(execution)
                throw error
            }
            execution.key = key
        }
        return try await performLeased(execution, kind, until: deadline, send)
    }

    private func letGo(_ execution: Execution) {
        if let key = execution.key { keys.release(key) }
        execution.key = nil
    }

    private func giveUp(_ execution: Execution) {
        letGo(execution)
        recycle(execution)
    }

    private func performShared(
        _ execution: Execution, _ kind: RequestKind, _ route: KeyTable<KeyWaiter>.Route,
        until deadline: ContinuousClock.Instant, _ send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) {
        let lane: PoolStateMachine<Execution>.Lane =
            kind.isReadOnly && configuration.readConnections > 0 ? .reads : .commits
        for attempt in 0..<Self.attemptLimit {
            let connection =
                if let bytes = kind.bytesInGroup, let key = execution.key {
                    // Who was in a group that failed goes alone.
                    try await groupConnection(
                        key, attempt == 0 ? bytes : .max, isTogether: route == .together, for: execution,
                        until: deadline)
                } else if let id = pool.acquireShared(lane), let ready = self.connection(id) {
                    ready
                } else {
                    try await sharedConnection(lane, for: execution, until: deadline)
                }
            connection.beginRequest(
                isReadOnly: kind.isReadOnly && attempt == 0, isTransaction: kind.isTransaction)
            execution.commits = !kind.isReadOnly
            send(connection, execution)
            switch await outcome(of: execution) {
            case .succeeded: return
            case .failed(let error): throw error
            case .again, .granted:
                execution.prepareToRepeat()
                try requireTime(until: deadline)
            }
        }
        throw .unavailable(retryAfter: .seconds(1))
    }

    /// Whoever has waited as long as anybody may is not sent once more. (A function of its own, because what it needs would be
    /// in the memory of each waiting task otherwise, for which there is just room enough.)
    @inline(never)
    private func requireTime(until deadline: ContinuousClock.Instant) throws(PostgresError) {
        if loop.now >= deadline { throw unavailable() }
    }

    private func sharedConnection(
        _ lane: PoolStateMachine<Execution>.Lane, for execution: Execution, until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> PostgresConnection {
        while true {
            guard let waiter = pool.waitForShared(execution, lane, until: deadline) else { throw unavailable() }
            if let connection = try await granted(waiter, to: execution) { return connection }
            // It has ended since it was granted, and the others may all be idle: then nobody's end would wake this one.
            if let id = pool.acquireShared(lane), let ready = self.connection(id) { return ready }
        }
    }

    /// Sends the request as a transaction of its own on a connection of its own, all in one flush. The request's key
    /// goes with it.
    private func performLeased(
        _ execution: Execution, _ kind: RequestKind, until deadline: ContinuousClock.Instant,
        _ send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        let key = execution.key
        execution.key = nil
        let held = HeldKeys(key: key)
        let connection: PostgresConnection
        do throws(PostgresError) {
            try checkCommits(kind)
            connection = try await lease(.short, for: execution, until: deadline)
        } catch {
            letGo(held)
            recycle(execution)
            throw error
        }
        do throws(PostgresError) { try checkCommits(kind) } catch {
            release(connection, reusable: true)
            letGo(held)
            recycle(execution)
            throw error
        }
        for _ in 0..<Self.attemptLimit {
            connection.beginRequest(isReadOnly: false)
            execution.commits = !kind.isReadOnly
            execution.firstResult = TransactionIsolation.readCommitted.begin(
                on: connection, for: execution, configuration)
            send(connection, execution)
            if kind.isReadOnly {
                connection.send(Commit(), for: execution)
            } else {
                connection.sendCommit(of: execution)
            }
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
            if loop.now >= deadline { break }
        }
        giveBack(connection, held)
        recycle(execution)
        throw unavailable()
    }

    /// - Throws: ``PostgresError/unavailable(retryAfter:)`` for what writes while no commit ends.
    private func checkCommits(_ kind: RequestKind) throws(PostgresError) {
        if !kind.isReadOnly && pool.commitsAreClosed { throw unavailable() }
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
