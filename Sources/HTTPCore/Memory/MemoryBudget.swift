internal import Synchronization

/// How much memory all bodies of a process may take, and how much of it one party may have.
///
/// What is counted is a body's peak: its text, what is parsed and decoded of it, and what the database's driver holds of
/// it while it is sent (``MemoryFactor``). A party is an account, or an address as long as no account is known.
///
/// - Each party has a part, an eighth of the whole.
/// - Beyond its part it may have one body at a time that is the only one it has, for otherwise the largest items could
///   not be stored at all. Such bodies have memory of their own: it is lent to them, and what the others have is whole.
public final class MemoryBudget: Sendable {
    /// Who is charged.
    public enum Party: Hashable, Sendable {
        /// The network of an address, as connections are counted by.
        case address(UInt64)
        case account(UInt64, UInt64)
    }

    private struct State {
        /// Within parts.
        var used = 0
        /// By bodies beyond their party's part.
        var lent = 0
        var parties: [Party: Int] = [:]
    }

    /// The bytes of the whole that is divided into parts.
    public let total: Int
    /// The bytes that one party may have in several bodies.
    public let part: Int
    /// The bytes for all bodies beyond their party's part: the largest charge that can ever be granted.
    public let loan: Int
    private let state = Mutex(State())

    public init(total: Int, loan: Int) {
        self.total = total
        self.loan = loan
        part = total / 8
    }

    /// Bytes that are charged now.
    public var used: Int { state.withLock { $0.used + $0.lent } }

    /// Bytes that are charged to a party now.
    public func used(by party: Party) -> Int { state.withLock { $0.parties[party] ?? 0 } }

    /// A charge of nothing, to be enlarged.
    public func open(for party: Party) -> MemoryCharge { MemoryCharge(self, party) }

    /// Exchanges a charge for another one; a smaller one of the same party is always granted.
    fileprivate func exchange(_ old: Int, of payer: Party, for new: Int, of party: Party) -> Bool {
        state.withLock { state in
            let rest = (state.parties[party] ?? 0) - (payer == party ? old : 0)
            let used = state.used + (new > part ? 0 : new) - (old > part ? 0 : old)
            let lent = state.lent + (new > part ? new : 0) - (old > part ? old : 0)
            if new > old || payer != party {
                guard new > part ? rest == 0 && lent <= loan : rest + new <= part && used <= total else { return false }
            }
            if payer != party { state.parties[payer] = Self.remaining((state.parties[payer] ?? 0) - old) }
            state.parties[party] = Self.remaining(rest + new)
            state.used = used
            state.lent = lent
            return true
        }
    }

    /// Parties that have nothing take no memory either.
    private static func remaining(_ count: Int) -> Int? { count > 0 ? count : nil }
}

/// What one body takes of a ``MemoryBudget``; given back when the last reference to it goes.
public final class MemoryCharge: Sendable {
    private struct State {
        var party: MemoryBudget.Party
        var count = 0
    }

    private let budget: MemoryBudget
    private let state: Mutex<State>

    fileprivate init(_ budget: MemoryBudget, _ party: MemoryBudget.Party) {
        self.budget = budget
        state = Mutex(State(party: party))
    }

    deinit { resize(to: 0) }

    /// The bytes that are charged.
    public var count: Int { state.withLock { $0.count } }

    /// Whether it is beyond what one party may have of the parts.
    public var isLent: Bool { count > budget.part }

    /// Makes the charge so many bytes.
    /// - Returns: Whether there is room; if not, nothing has changed. To have less is always granted.
    @discardableResult public func resize(to count: Int) -> Bool {
        state.withLock { state in
            guard budget.exchange(state.count, of: state.party, for: count, of: state.party) else { return false }
            state.count = count
            return true
        }
    }

    /// Charges another party from now on: the account, once it is known who asks.
    /// - Returns: Whether that party has room; if not, nothing has changed.
    public func move(to party: MemoryBudget.Party) -> Bool {
        state.withLock { state in
            guard budget.exchange(state.count, of: state.party, for: state.count, of: party) else { return false }
            state.party = party
            return true
        }
    }
}

/// How much memory a body takes at its peak, in quarters of its length.
public struct MemoryFactor: Sendable, Hashable {
    private let quarters: Int

    /// Text of which base64 was decoded (three quarters), and then, when the text has gone, three copies of what was
    /// decoded: its own, the parameter's and the driver's.
    public static let json = MemoryFactor(quarters: 9)
    /// The bytes, the parameter's copy and the driver's.
    public static let bytes = MemoryFactor(quarters: 12)
    /// Bytes that nothing is made of.
    public static let none = MemoryFactor(quarters: 4)

    private init(quarters: Int) { self.quarters = quarters }

    /// The peak of a body of so many bytes.
    public func peak(of count: Int) -> Int { count / 4 * quarters + count % 4 * quarters / 4 }
}
