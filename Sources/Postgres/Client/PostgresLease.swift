internal import EventLoop

/// A dedicated connection, valid until the body that receives it returns.
public final class PostgresLease {
    let client: PostgresClient
    let connection: PostgresConnection
    /// The epoch of a new connection. ``PostgresConfiguration/onConnected`` sets it to the one in which it found
    /// the server usable.
    ///
    /// Its initial value is the epoch at the start of that check.
    public var epoch: Int
    private var isValid = true

    init(client: PostgresClient, connection: PostgresConnection) {
        self.client = client
        self.connection = connection
        epoch = client.epoch.current
    }

    /// True if the connection only probes a server, and is closed afterwards.
    public var isProbe: Bool { connection.lane == .probe }

    /// True if the server is a cluster node.
    public var isDistributed: Bool { connection.isDistributed }

    /// Sends one statement and returns its rows.
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        let execution = try await repeating { execution in connection.send(statement, for: execution) }
        defer { client.recycle(execution) }
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// Sends several statements together, followed by one sync: one round trip, all or nothing.
    public func execute<each S: Statement>(
        _ statement: repeat each S
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        let execution = try await repeating(isTransaction: true) { execution in
            repeat connection.send(each statement, for: execution)
        }
        defer { client.recycle(execution) }
        var index = 0
        return (repeat try execution.takeNextRows(of: (each S).self, after: &index))
    }

    private func repeating(
        isTransaction: Bool = false, _ send: (Execution) -> Void
    ) async throws(PostgresError) -> Execution {
        for _ in 0..<PostgresClient.attemptLimit {
            let execution = try await perform(isTransaction: isTransaction) { execution in
                execution.commits = true
                execution.firstResult = connection.extendTimeouts(for: execution)
                send(execution)
            }
            if let execution { return execution }
        }
        throw .unavailable(retryAfter: .seconds(1))
    }

    func perform(
        ignoringCancellation: Bool = false, isTransaction: Bool = false, _ send: (Execution) -> Void
    ) async throws(PostgresError) -> Execution? {
        precondition(isValid, "a lease was used after its body had returned: another request may use the connection")
        return try await client.perform(
            on: connection, ignoringCancellation: ignoringCancellation, isTransaction: isTransaction, send: send)
    }

    func invalidate() { isValid = false }
}

extension PostgresConnection {
    /// Sets the limits of a dedicated connection for the rest of the session.
    func extendTimeouts() {
        guard client.keepsSessions else { return }
        beginRequest(isReadOnly: false)
        send(SetLeaseTimeouts(configuration: client.configuration, isLocal: false), for: Execution())
    }

    /// Sets the same limits for one request, where sessions are not kept.
    /// - Returns: The number of results before the request's own.
    fileprivate func extendTimeouts(for execution: Execution) -> Int {
        if client.keepsSessions { return 0 }
        send(SetLeaseTimeouts(configuration: client.configuration, isLocal: true), for: execution)
        return 1
    }
}

extension PostgresClient {
    /// Passes a dedicated connection to `body`, without a transaction, for uses of a session.
    ///
    /// The connection is closed afterwards, which removes all that `body` left: settings, advisory locks, temporary
    /// tables. Where sessions are not kept, `body` must leave nothing.
    /// - Parameters:
    ///   - key: Identifies what it locks or writes. `body` must not start another request with the same key.
    ///   - use: The expected duration.
    public func withConnection<Result>(
        key: RequestKey? = nil, use: LeaseUse = .short,
        _ body: (PostgresLease) async throws -> Result
    ) async throws -> Result {
        let (lease, held) = try await lease(key: key, use)
        let connection = lease.connection
        connection.extendTimeouts()
        defer {
            lease.invalidate()
            // A statement of an abandoned task may still be running.
            rollBack(connection) { [unowned self] _ in
                release(connection, reusable: false)
                letGo(held)
            }
        }
        return try await body(lease)
    }
}

extension PostgresLease {
    /// Runs `body` in a transaction on this connection: commits when it returns, rolls back when it throws.
    ///
    /// After an error the connection must not be used for anything else.
    public func withTransaction<Result>(_ body: (Transaction) async throws -> Result) async throws -> Result {
        let transaction = Transaction(client: client, lease: self, isolation: .readCommitted)
        do {
            let result = try await body(transaction)
            try await transaction.commit()
            return result
        } catch {
            _ = await transaction.rollBack()
            throw error
        }
    }
}

/// The duration for which a transaction may hold a dedicated connection.
public enum LeaseUse: Sendable, Equatable {
    /// A few round trips.
    case short
    /// Seconds to minutes, such as the commit of a rotation or a deletion.
    ///
    /// At most half of the leases are long. Each holder (a client's address, a command) has one of a process at a
    /// time.
    case long(by: RequestKey?)
}

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
