internal import Synchronization

/// The epoch of connections, shared by the clients of a process, with the index of the server to try first.
///
/// A client begins a new epoch when open connections may lead to a server that is no longer the database. All
/// clients then close the connections of earlier epochs.
public final class ConnectionEpoch: Sendable {
    private let number = Atomic(0)
    private let server = Atomic(0)
    private let clients = Mutex<[ObjectIdentifier: @Sendable (Event) -> Void]>([:])

    /// A notification from one client to all of them.
    enum Event: Sendable {
        /// A new epoch has begun.
        case begun
        /// A commit of this epoch does not end.
        case stalled(epoch: Int)
    }

    public init() {}

    /// The current epoch.
    public var current: Int { number.load(ordering: .sequentiallyConsistent) }

    /// Begins the next epoch. From then on, no reply of an earlier connection counts as a commit.
    ///
    /// Each client closes its earlier connections in a later iteration of its loop.
    /// - Parameter lease: A connection to the new server, which the clients then try first.
    @discardableResult public func begin(at lease: PostgresLease? = nil) -> Int {
        // Before the notification: the clients open new connections immediately.
        if let lease { prefer(lease.connection.serverIndex) }
        let begun = number.add(1, ordering: .sequentiallyConsistent).newValue
        clients.withLock { for tell in $0.values { tell(.begun) } }
        return begun
    }

    // MARK: Clients

    /// Adds a client.
    /// - Parameter tell: Called on any thread; must not block.
    func join(_ client: PostgresClient, _ tell: @escaping @Sendable (Event) -> Void) {
        clients.withLock { $0[ObjectIdentifier(client)] = tell }
    }

    func leave(_ client: PostgresClient) {
        _ = clients.withLock { $0.removeValue(forKey: ObjectIdentifier(client)) }
    }

    /// Notifies the other clients of a commit that does not end: theirs probably will not either.
    func stall(_ client: PostgresClient, epoch: Int) {
        clients.withLock { for (id, tell) in $0 where id != ObjectIdentifier(client) { tell(.stalled(epoch: epoch)) } }
    }

    /// The index of the server to try first.
    var preferredServer: Int { server.load(ordering: .relaxed) }

    func prefer(_ serverIndex: Int) { server.store(serverIndex, ordering: .relaxed) }

    /// Advances from `serverIndex` to the next server. Failures of connections opened together count once.
    func avoid(_ serverIndex: Int) {
        _ = server.compareExchange(expected: serverIndex, desired: serverIndex + 1, ordering: .relaxed)
    }
}

/// The latest timeline of each cluster in use. A frozen or disconnected primary can return on an earlier timeline after
/// a standby was promoted. It accepts writes as a primary, but they are lost.
///
/// The checks in ``PostgresConfiguration/onConnected`` pass in the timeline of each connection. After ``Place/later``
/// they begin a new epoch with ``ConnectionEpoch/begin(at:)``.
public struct TimelineMemory: Sendable {
    /// The server of a connection, compared with earlier connections.
    public enum Place: Sendable {
        /// The same as before. Also used if the timeline is not readable.
        case same
        /// A new one: another server was promoted, or has replaced it.
        case later
        /// A former primary. Another server was promoted.
        case earlier
    }

    private var latest: [String: UInt32] = [:]

    public init() {}

    /// Records the server of a connection.
    /// - Parameters:
    ///   - cluster: The system identifier of the server.
    ///   - timeline: The timeline of its write-ahead log.
    public mutating func note(cluster: String, timeline: UInt32) -> Place {
        let isFirst = latest.isEmpty
        let known = latest[cluster] ?? 0
        latest[cluster] = max(known, timeline)
        if timeline < known { return .earlier }
        return timeline == known || isFirst ? .same : .later
    }
}
