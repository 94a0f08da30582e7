internal import EventLoop

/// The properties of a request that is still to be sent.
private struct RequestKind {
    var isReadOnly = true
    /// The number of bytes that it sends, if it may share a transaction with others.
    var bytesInGroup: Int? = 0
    /// The type of its first statement.
    var type: ObjectIdentifier?
    private var statementCount = 0

    /// True if the request needs a transaction.
    ///
    /// Single statements and reads need none. A single statement that may join a group gets one, too: on a cluster only
    /// a transaction limits its wait for a lock.
    var isTransaction: Bool { !isReadOnly && (statementCount > 1 || bytesInGroup != nil) }

    mutating func add<S: Statement>(_ statement: S) {
        isReadOnly = isReadOnly && S.isReadOnly
        statementCount += 1
        type = type ?? ObjectIdentifier(S.self)
        if let bytes = statement.bytesInGroup { bytesInGroup? += bytes } else { bytesInGroup = nil }
    }
}

extension PostgresClient {
    /// Sends one statement, followed by its own sync, and returns its rows.
    /// - Parameter key: Identifies what it locks or writes. Statements that only read need none.
    public func execute<S: Statement>(
        _ statement: S, key: RequestKey? = nil
    ) async throws(PostgresError) -> [S.Row] {
        var kind = RequestKind()
        kind.add(statement)
        let execution = try await perform(kind, key: key) { $0.send(statement, for: $1) }
        defer { recycle(execution) }
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// Sends several statements together, followed by one sync: one round trip, one transaction, all or nothing.
    /// - Parameter key: Identifies what they lock or write. Statements that only read need none.
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

    /// Sends a request on a shared connection, and waits for its end.
    ///
    /// The request is sent again if neighbours made it fail. After a lock it moves to a dedicated connection.
    private func perform(
        _ kind: RequestKind, key: RequestKey?, send: (PostgresConnection, Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        loop.preconditionInLoop()
        followEpoch()
        // Checked first, so that no request waits for a key whose holder does not end.
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
                // After a cancellation, the request keeps the key until the server replies.
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
        // One request of each key or, without a key, of each statement type moves at a time. A lock that many requests
        // meet takes one lease of a process.
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
        let lane: PoolLane =
            kind.isReadOnly && configuration.readConnections > 0 ? .reads : .commits
        for attempt in 0..<Self.attemptLimit {
            let connection =
                if let bytes = kind.bytesInGroup, let key = execution.key {
                    // After the failure of a group, its members are sent alone.
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

    /// Throws if the deadline has passed, before another attempt.
    ///
    /// A separate function that is not inlined: its variables would otherwise be part of each waiting task's memory,
    /// which has just enough room.
    @inline(never)
    private func requireTime(until deadline: ContinuousClock.Instant) throws(PostgresError) {
        if loop.now >= deadline { throw unavailable() }
    }

    private func sharedConnection(
        _ lane: PoolLane, for execution: Execution, until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> PostgresConnection {
        while true {
            guard let waiter = pool.waitForShared(execution, lane, until: deadline) else { throw unavailable() }
            if let connection = try await granted(waiter, to: execution) { return connection }
            // The connection has ended since the grant. With only idle connections left, no reply would wake this
            // request.
            if let id = pool.acquireShared(lane), let ready = self.connection(id) { return ready }
        }
    }

    /// Returns a connection for a request that writes and may share a transaction.
    ///
    /// An idle connection is returned immediately, so low load has no delay. Otherwise the request joins the group that
    /// is sent after the current commit.
    /// - Parameters:
    ///   - key: The key that it holds.
    ///   - bytes: The bytes that it sends. More than a group's limit keeps it alone.
    ///   - isTogether: True if more requests of the key will arrive; all use one connection.
    private func groupConnection(
        _ key: RequestKey, _ bytes: Int, isTogether: Bool, for execution: Execution,
        until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> PostgresConnection {
        let keyNumber = isTogether ? key.hashValue : nil
        if !isTogether, let id = pool.acquireAlone(), let connection = connection(id) { return connection }
        while true {
            guard let waiter = pool.waitForGroup(execution, keyNumber, bytes: bytes, until: deadline) else {
                throw unavailable()
            }
            loop.notifyAtIterationEnd(batchFlush)
            if let connection = try await granted(waiter, to: execution) { return connection }
        }
    }

    /// Sends the request as a transaction on a dedicated connection, in one flush. Takes over the request's key.
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

    /// - Throws: ``PostgresError/unavailable(retryAfter:because:)`` for writes while no commit ends.
    private func checkCommits(_ kind: RequestKind) throws(PostgresError) {
        if !kind.isReadOnly && pool.commitsAreClosed { throw unavailable() }
    }
}

extension PostgresError {
    /// True if the request may succeed on a connection where it can wait.
    fileprivate var wantsLease: Bool {
        switch sqlState {
        case .lockNotAvailable, .deadlockDetected, .serializationFailure: true
        default: false
        }
    }
}

/// Forms groups for idle connections at the end of a loop iteration. By then, all requests that share a key have
/// arrived.
final class BatchFlush: IterationObserver {
    // The client owns it.
    private unowned let client: PostgresClient
    var isIterationEndRequested = false

    init(_ client: PostgresClient) { self.client = client }

    func iterationEnded() { client.perform(client.pool.serveIdleCommits()) }
}
