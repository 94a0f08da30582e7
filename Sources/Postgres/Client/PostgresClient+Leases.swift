internal import EventLoop

/// The keys that a transaction holds besides its connection.
struct HeldKeys {
    var key: RequestKey?
    /// The key of a long lease (``LeaseUse/long(by:)``).
    var limitKey: RequestKey?
}

extension PostgresClient {
    // MARK: Keys

    /// Waits until no other request holds `key`.
    /// - Parameter joinsGroup: True if other requests of this client may hold it in the same group.
    func hold(
        _ key: RequestKey, joinsGroup: Bool = false, until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> KeyTable<KeyWaiter>.Route {
        if let route = keys.tryHold(key, now: loop.now) { return route }
        return try await keys.hold(key, batchOwner: joinsGroup ? ObjectIdentifier(self) : nil, until: deadline)
    }

    /// Acquires a transaction's keys. It waits for the key of a long lease first, and holds no other key meanwhile.
    func hold(_ key: RequestKey?, _ use: LeaseUse, until deadline: ContinuousClock.Instant) async throws(PostgresError)
        -> HeldKeys
    {
        var held = HeldKeys()
        if case .long(let limitKey?) = use {
            _ = try await hold(limitKey, until: deadline)
            held.limitKey = limitKey
        }
        if let key {
            do throws(PostgresError) { _ = try await hold(key, until: deadline) } catch {
                letGo(held)
                throw error
            }
            held.key = key
        }
        return held
    }

    func letGo(_ held: HeldKeys) {
        if let key = held.key { keys.release(key) }
        if let limitKey = held.limitKey { keys.release(limitKey) }
    }

    // MARK: Connections

    /// Acquires a dedicated connection and keys, which the caller releases.
    func lease(key: RequestKey?, _ use: LeaseUse) async throws(PostgresError) -> (PostgresLease, HeldKeys) {
        loop.preconditionInLoop()
        followEpoch()
        let deadline = loop.now + configuration.acquireTimeout
        let held = try await hold(key, use, until: deadline)
        let execution = makeExecution()
        defer { recycle(execution) }
        do throws(PostgresError) {
            let connection = try await lease(use, for: execution, until: deadline)
            return (PostgresLease(client: self, connection: connection), held)
        } catch {
            letGo(held)
            throw error
        }
    }

    /// Acquires a dedicated connection, which the caller releases.
    func lease(
        _ use: LeaseUse, for execution: Execution, until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> PostgresConnection {
        var isLong = false
        if case .long = use { isLong = true }
        while true {
            guard let (waiter, actions) = pool.waitForLease(execution, isLong: isLong, until: deadline) else {
                throw unavailable()
            }
            if let connection = try await granted(waiter, actions, to: execution) { return connection }
        }
    }

    func release(_ connection: PostgresConnection, reusable: Bool) {
        perform(
            pool.releaseLease(connection.id, reusable: reusable && connection.isReusable, now: loop.now))
    }

    /// Rolls back the current transaction, if any. The reply does not matter.
    func rollBack(_ connection: PostgresConnection, then completion: @escaping (Bool) -> Void = { _ in }) {
        guard connection.isOpen else { return completion(false) }
        let execution = Execution()
        execution.completion = { outcome in
            if case .succeeded = outcome { completion(true) } else { completion(false) }
        }
        connection.beginRequest(isReadOnly: false)
        connection.send(Rollback(), for: execution)
    }

    /// Releases a lease and its keys in the background, after its pending requests.
    func giveBack(_ connection: PostgresConnection, _ held: HeldKeys) {
        rollBack(connection) { [unowned self] isClean in
            release(connection, reusable: isClean)
            letGo(held)
        }
    }

    // MARK: Requests

    /// Sends a request on a leased connection and waits for its end.
    /// - Returns: `nil` when it has to be sent again. In a transaction, the whole transaction has to be repeated.
    func perform(
        on connection: PostgresConnection, ignoringCancellation: Bool = false, isTransaction: Bool = false,
        send: (Execution) -> Void
    ) async throws(PostgresError) -> Execution? {
        loop.preconditionInLoop()
        guard connection.isOpen else { throw .connectionLost }
        if connection.isOutdated { throw unavailable() }
        let execution = makeExecution()
        connection.beginRequest(isReadOnly: false, isTransaction: isTransaction)
        send(execution)
        let outcome =
            if ignoringCancellation {
                await uninterruptedOutcome(of: execution)
            } else {
                await outcome(of: execution)
            }
        switch outcome {
        case .succeeded: return execution
        case .failed(let error):
            recycle(execution)
            throw error
        case .again, .granted:
            recycle(execution)
            return nil
        }
    }
}
