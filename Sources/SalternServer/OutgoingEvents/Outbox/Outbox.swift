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

/// The kinds of events for services of the operator. The raw value is their public name.
public enum EventKind: String, Sendable, CaseIterable {
    case accountCreated = "account.created"
    case accountDeleted = "account.deleted"
    case accountLocked = "account.locked"
    case accountUnlocked = "account.unlocked"
    case planChanged = "plan.changed"
    case receiptStored = "receipt.stored"
    case sessionOpened = "session.opened"
    case sessionEnded = "session.ended"
    /// The account's items have changed. Such events may be lost.
    case changes

    /// The kinds of a destination that names none.
    public static var standard: [EventKind] { allCases.filter(\.isOrdered) }

    /// True if the events of an account arrive in their order.
    public var isOrdered: Bool {
        switch self {
        case .accountCreated, .accountDeleted, .accountLocked, .accountUnlocked, .planChanged, .receiptStored: true
        case .sessionOpened, .sessionEnded, .changes: false
        }
    }
}

/// Separates an account's events for one destination. Events of one lane are delivered one after another.
enum EventLane {
    /// The lane of ordered events.
    static let ordered = UUID.zero
    /// The lane of the latest change of the account's items. It replaces an earlier one.
    static let changes = UUID(high: 0, low: 1)
    /// The lane that counts dropped events of sessions. It has no events, and its last number is the count.
    static let dropped = UUID(high: 0, low: 2)

    /// The most events of sessions of an account that wait at a destination. Further ones are dropped.
    static let queueLimit = 32
    /// Beyond this number of waiting events of an account, only one receipt waits.
    static let receiptLimit = 32
    /// The most queues of an account at a destination: one for each event of a session, and one for each other lane.
    static let totalLimit = queueLimit + 3

    static let orderedSQL: SQLFragment = "'00000000-0000-0000-0000-000000000000'::uuid"
    static let changesSQL: SQLFragment = "'00000000-0000-0000-0000-000000000001'::uuid"
    static let droppedSQL: SQLFragment = "'00000000-0000-0000-0000-000000000002'::uuid"

    /// Returns an identifier that differs for each destination, so that destinations cannot compare identifiers. It
    /// depends on a random seed, because a cluster evaluates random functions once for all rows of a statement.
    /// - Parameters:
    ///   - seed: 16 random bytes as a UUID.
    ///   - parts: Further UUIDs that distinguish rows.
    static func identifier<Root, Context>(
        _ seed: SQLTemplate<Root, Context>, _ parts: SQLFragment
    ) -> SQLTemplate<Root, Context> {
        "substring(encode(sha256(uuid_send(\(seed)) || \(parts)), 'hex') FROM 1 FOR 32)::uuid"
    }
}

/// Names the queue of one account, destination and lane.
struct EventQueueKey: Sendable, Hashable {
    let accountID: AccountID
    let destinationID: DestinationID
    let lane: UUID

    /// The condition that an event `e` of a queue waits. As `parked_at IS NULL`, the planner could choose an index by
    /// time, and read the waiting events of all accounts.
    static let isWaiting: SQLFragment = "coalesce(e.parked_at, 'infinity') = 'infinity'"

    /// Returns the condition that a row `alias` is in the queue.
    static func holds<Root>(
        _ alias: SQLFragment, _ path: any KeyPath<Root, EventQueueKey> & Sendable
    ) -> SQL<Root> {
        let key: SQL<EventQueueKey> = """
            \(alias).account_id = \(\.accountID) AND \(alias).destination_id = \(\.destinationID) AND \(alias).lane = \(\.lane)
            """
        return "\(key, of: path)"
    }
}
