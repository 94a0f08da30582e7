internal import Postgres
internal import Synchronization

/// Holds the event kinds that any destination receives, and the accounts whose items have changed. All loops of a node
/// share it.
///
/// Events of accounts need neither, because their statements read the destinations in the transaction. A node reads new
/// destinations within ``EventDelivery/reloadInterval``.
public final class Outbox: Sendable {
    /// The most accounts with waiting changes. Further ones are dropped.
    static let changeLimit = 10_000

    private struct State {
        var destinations: [Destination] = []
        /// The number of destinations that this node has disabled.
        var disabledCount = 0
        var changed: Set<AccountID> = []
    }

    private let state = Mutex(State())
    /// One bit for each kind that any destination receives.
    private let kinds = Atomic<UInt>(0)
    private let dropped = Atomic<Int>(0)
    private let droppedOfSessions = Atomic<Int>(0)
    /// Requests that wait for events.
    let waits = EventWaits()

    public init() {}

    /// Returns whether any destination of the last read receives events of the kind.
    func gets(_ kind: EventKind) -> Bool { kinds.load(ordering: .relaxed) & Self.bit(kind) != 0 }

    /// The destinations of the last read.
    var destinations: [Destination] { state.withLock { $0.destinations } }

    /// The number of changes dropped since the start, because too many accounts changed.
    public var droppedChanges: Int { dropped.load(ordering: .relaxed) }

    /// The number of events of sessions that this node has found dropped, because too many of their account wait.
    public var droppedSessionEvents: Int { droppedOfSessions.load(ordering: .relaxed) }

    /// Moves a queue's count of dropped events to the node's.
    func takeDropped(_ key: EventQueueKey, _ database: PostgresClient) async throws(PostgresError) {
        guard let count = try await database.execute(TakeDroppedEvents(key: key)).first else { return }
        droppedOfSessions.add(Int(count), ordering: .relaxed)
    }

    /// Ends all requests that wait for events, because the node stops.
    public func endWaits() { waits.endAll() }

    /// The number of destinations that this node has disabled. A read that began at another number is out of date.
    var disabledCount: Int { state.withLock { $0.disabledCount } }

    /// Uses destinations that were read.
    /// - Parameter disabledCount: The number at the begin of the read. Nil if none can have been disabled since.
    func use(_ destinations: [Destination], readAt disabledCount: Int? = nil) {
        let bits = EventKind.allCases.reduce(0 as UInt) { bits, kind in
            destinations.contains { $0.gets(kind) } ? bits | Self.bit(kind) : bits
        }
        let isUsed = state.withLock { state in
            guard disabledCount ?? state.disabledCount == state.disabledCount else { return false }
            state.destinations = destinations
            if bits & Self.bit(.changes) == 0 { state.changed = [] }
            return true
        }
        if isUsed { kinds.store(bits, ordering: .relaxed) }
    }

    /// Disables a destination before the next read.
    func disable(_ id: DestinationID, now: Timestamp) {
        state.withLock { $0.disabledCount += 1 }
        use(destinations.map { $0.id == id ? $0.disabled(at: now) : $0 })
    }

    /// Records a committed change of an account's items.
    func noteChange(of account: AccountID) {
        guard gets(.changes) else { return }
        let isNoted = state.withLock { state in
            guard state.changed.count < Self.changeLimit || state.changed.contains(account) else { return false }
            state.changed.insert(account)
            return true
        }
        if !isNoted { dropped.add(1, ordering: .relaxed) }
    }

    /// Returns the accounts whose items have changed since the last call.
    func takeChanges() -> Set<AccountID> {
        state.withLock { state in
            let changed = state.changed
            state.changed = []
            return changed
        }
    }

    private static func bit(_ kind: EventKind) -> UInt { 1 << UInt(EventKind.allCases.firstIndex(of: kind) ?? 0) }
}
