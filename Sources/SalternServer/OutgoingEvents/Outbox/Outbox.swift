internal import Postgres
internal import Synchronization

/// The outgoing events of one node, as its requests meet them: which kinds any destination gets, and the accounts whose items
/// have changed. Shared by all loops.
///
/// Events of accounts need neither: their statements read the destinations in the transaction. A node meets new destinations
/// within ``EventDelivery/reloadInterval``.
public final class Outbox: Sendable {
    /// The most accounts whose changes wait; further ones are dropped.
    static let changeLimit = 10_000

    private struct State {
        var destinations: [Destination] = []
        var changed: Set<AccountID> = []
    }

    private let state = Mutex(State())
    /// A bit for each kind that any destination gets.
    private let kinds = Atomic<UInt>(0)
    private let dropped = Atomic<Int>(0)
    /// Requests that wait for events.
    let waits = EventWaits()

    public init() {}

    /// Returns whether any destination gets events of the kind, as far as this node has met it.
    func gets(_ kind: EventKind) -> Bool { kinds.load(ordering: .relaxed) & Self.bit(kind) != 0 }

    /// The destinations as they were read last.
    var destinations: [Destination] { state.withLock { $0.destinations } }

    /// The changes that were dropped since the start, because too many accounts changed.
    public var droppedChanges: Int { dropped.load(ordering: .relaxed) }

    func use(_ destinations: [Destination]) {
        let bits = EventKind.allCases.reduce(0 as UInt) { bits, kind in
            destinations.contains { $0.gets(kind) } ? bits | Self.bit(kind) : bits
        }
        state.withLock { state in
            state.destinations = destinations
            if bits & Self.bit(.changes) == 0 { state.changed = [] }
        }
        kinds.store(bits, ordering: .relaxed)
    }

    /// Stops a destination before it is read again.
    func disable(_ id: DestinationID, now: Timestamp) {
        use(destinations.map { $0.id == id ? $0.disabled(at: now) : $0 })
    }

    /// Notes that items of an account have changed, after the commit.
    func noteChange(of account: AccountID) {
        guard gets(.changes) else { return }
        let isNoted = state.withLock { state in
            guard state.changed.count < Self.changeLimit || state.changed.contains(account) else { return false }
            state.changed.insert(account)
            return true
        }
        if !isNoted { dropped.add(1, ordering: .relaxed) }
    }

    /// Takes the accounts whose items have changed since the last time.
    func takeChanges() -> Set<AccountID> {
        state.withLock { state in
            let changed = state.changed
            state.changed = []
            return changed
        }
    }

    private static func bit(_ kind: EventKind) -> UInt { 1 << UInt(EventKind.allCases.firstIndex(of: kind) ?? 0) }
}
