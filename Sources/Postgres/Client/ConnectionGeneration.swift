internal import Synchronization

/// What the clients of a process know together of their server: which of several is tried first, and since when connections
/// are good. Whoever finds that those which are open may lead to what is the database no more begins another epoch; then
/// every client gives up those of earlier ones.
public final class ConnectionGeneration: Sendable {
    private let number = Atomic(0)
    private let server = Atomic(0)
    private let clients = Mutex<[ObjectIdentifier: @Sendable (Event) -> Void]>([:])

    /// What one client tells all of them.
    enum Event: Sendable {
        /// Another epoch has begun.
        case begun
        /// A commit of this epoch does not end.
        case stalled(epoch: Int)
    }

    public init() {}

    /// The present one.
    public var current: Int { number.load(ordering: .sequentiallyConsistent) }

    /// Begins the next. From now on no answer of an earlier one's connection counts as a commit; each client gives its own up
    /// when its loop has its turn.
    /// - Parameter lease: A connection to the server that is used from now on: the clients try it first.
    @discardableResult public func begin(at lease: PostgresLease? = nil) -> Int {
        // Before the clients know: they open others at once.
        if let lease { prefer(lease.connection.rotation) }
        let begun = number.add(1, ordering: .sequentiallyConsistent).newValue
        clients.withLock { for tell in $0.values { tell(.begun) } }
        return begun
    }

    // MARK: Clients

    /// - Parameter tell: Called on any thread; must not wait.
    func join(_ client: PostgresClient, _ tell: @escaping @Sendable (Event) -> Void) {
        clients.withLock { $0[ObjectIdentifier(client)] = tell }
    }

    func leave(_ client: PostgresClient) {
        _ = clients.withLock { $0.removeValue(forKey: ObjectIdentifier(client)) }
    }

    /// A commit of one client does not end: those of the others will hardly.
    func stall(_ client: PostgresClient, epoch: Int) {
        clients.withLock { for (id, tell) in $0 where id != ObjectIdentifier(client) { tell(.stalled(epoch: epoch)) } }
    }

    /// Which of several servers is tried first.
    var preferredServer: Int { server.load(ordering: .relaxed) }

    func prefer(_ rotation: Int) { server.store(rotation, ordering: .relaxed) }

    /// Another than `rotation` is tried first. Those that were opened together and failed together say so once.
    func avoid(_ rotation: Int) {
        _ = server.compareExchange(expected: rotation, desired: rotation + 1, ordering: .relaxed)
    }
}
