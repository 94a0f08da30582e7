internal import EventLoop

/// The properties of a request that is still to be sent.
struct RequestKind {
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

/// Forms groups for idle connections at the end of a loop iteration. By then, all requests that share a key have
/// arrived.
final class BatchFlush: IterationObserver {
    // The client owns it.
    private unowned let client: PostgresClient
    var isIterationEndRequested = false

    init(_ client: PostgresClient) { self.client = client }

    func iterationEnded() { client.perform(client.pool.serveIdleCommits()) }
}

extension PostgresClient {
    /// Returns a connection for a request that writes and may share a transaction.
    ///
    /// An idle connection is returned immediately, so low load has no delay. Otherwise the request joins the group that
    /// is sent after the current commit.
    /// - Parameters:
    ///   - key: The key that it holds.
    ///   - bytes: The bytes that it sends. More than a group's limit keeps it alone.
    ///   - isTogether: True if more requests of the key will arrive; all use one connection.
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
