internal import EventLoop

/// What is known of a request before it is sent.
struct RequestKind {
    var isReadOnly = true
    /// What it sends, when it may share a transaction with others.
    var bytesInGroup: Int? = 0
    /// The type of its first statement.
    var type: ObjectIdentifier?
    private var statementCount = 0

    /// Whether it is to be one transaction: a single statement is one anyway, and those that read need none. Of what may
    /// share one, a single statement, too: on a cluster its wait for a lock is bounded by the transaction alone.
    var isTransaction: Bool { !isReadOnly && (statementCount > 1 || bytesInGroup != nil) }

    mutating func add<S: Statement>(_ statement: S) {
        isReadOnly = isReadOnly && S.isReadOnly
        statementCount += 1
        type = type ?? ObjectIdentifier(S.self)
        if let bytes = statement.bytesInGroup { bytesInGroup? += bytes } else { bytesInGroup = nil }
    }
}

/// Serves those who wait for a group of a connection that has nothing to do, when a turn of the loop is over: by then
/// all who hold a key together have come.
final class BatchFlush: IterationObserver {
    // Part of the client.
    private unowned let client: PostgresClient
    var isIterationEndRequested = false

    init(_ client: PostgresClient) { self.client = client }

    func iterationEnded() { client.perform(client.pool.serveIdleCommits()) }
}

extension PostgresClient {
    /// A connection for a request that writes and may share a transaction: at once when it is idle, so that low load has no
    /// wait, else for the group that goes out when the present commit is answered.
    /// - Parameters:
    ///   - key: What it holds.
    ///   - bytes: What it sends; more than a group may have when it has to be alone.
    ///   - isTogether: Whether others of the key are on their way: then all go to one connection.
    func groupConnection(
        _ key: RequestKey, _ bytes: Int, isTogether: Bool, for execution: Execution,
        until deadline: ContinuousClock.Instant
    ) async throws(PostgresError) -> PostgresConnection {
        let number = isTogether ? key.hashValue : nil
        if !isTogether, let id = pool.acquireAlone(), let connection = connection(id) { return connection }
        while true {
            guard let waiter = pool.waitForGroup(execution, number, bytes: bytes, until: deadline) else {
                throw unavailable()
            }
            loop.notifyAtIterationEnd(batchFlush)
            if let connection = try await granted(waiter, to: execution) { return connection }
        }
    }
}
