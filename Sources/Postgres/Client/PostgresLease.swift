internal import EventLoop

/// A connection that its holder has for itself; valid until the body it was given to returns.
public final class PostgresLease {
    let client: PostgresClient
    let connection: PostgresConnection
    /// Of a new connection, in ``PostgresConfiguration/onConnected``: the epoch in which it was found to be good, or else
    /// began to be looked at.
    public var epoch: Int
    private var isValid = true

    init(client: PostgresClient, connection: PostgresConnection) {
        self.client = client
        self.connection = connection
        epoch = client.epoch.current
    }

    /// Whether the connection only looks whether its server is to be used, and is closed then.
    public var isProbe: Bool { connection.lane == .probe }

    /// Whether the server is one node of a cluster.
    public var isDistributed: Bool { connection.isDistributed }

    /// Sends one statement and returns its rows.
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        let execution = try await repeating { execution in connection.send(statement, for: execution) }
        defer { client.recycle(execution) }
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// Sends several statements together, closed by one sync: one round trip, all or nothing.
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
        precondition(isValid, "a lease was used after its body had returned: the connection may be somebody else's")
        return try await client.perform(
            on: connection, ignoringCancellation: ignoringCancellation, isTransaction: isTransaction, send: send)
    }

    func invalidate() { isValid = false }
}

extension PostgresConnection {
    /// The limits of a connection of its own, for as long as the session lasts.
    func extendTimeouts() {
        guard client.keepsSessions else { return }
        beginRequest(isReadOnly: false)
        send(SetLeaseTimeouts(configuration: client.configuration, isLocal: false), for: Execution())
    }

    /// The same for one request, where there is no session.
    /// - Returns: How many results come before the request's own.
    fileprivate func extendTimeouts(for execution: Execution) -> Int {
        if client.keepsSessions { return 0 }
        send(SetLeaseTimeouts(configuration: client.configuration, isLocal: true), for: execution)
        return 1
    }
}

extension PostgresClient {
    /// Lends a connection of its own to `body`, without a transaction, for what belongs to a session.
    ///
    /// The connection is closed afterwards, and with it goes whatever `body` left behind: settings, advisory locks,
    /// temporary tables. (Where sessions are not kept, it must leave nothing behind.)
    /// - Parameters:
    ///   - key: What it locks or writes. `body` must not ask for a request of the same key elsewhere.
    ///   - use: How long it may take.
    public func withConnection<Result>(
        key: RequestKey? = nil, use: LeaseUse = .short,
        _ body: (PostgresLease) async throws -> Result
    ) async throws -> Result {
        let (lease, held) = try await lease(key: key, use)
        let connection = lease.connection
        connection.extendTimeouts()
        defer {
            lease.invalidate()
            // A statement whose task has gone may still be at work.
            rollBack(connection) { [unowned self] _ in
                release(connection, reusable: false)
                letGo(held)
            }
        }
        return try await body(lease)
    }
}
