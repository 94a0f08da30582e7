internal import Synchronization

/// How many sessions of an account this node has opened since it last counted the account's sessions, and ended those
/// beyond its plan's.
///
/// Counting costs PostgreSQL nearly half as much as opening, so it is done at every eighth log-in. An account about which
/// nothing is known counts as one that is due: after a start, and when another account has taken its place here. So no
/// account has more than ``interval`` sessions beyond its plan's for each node, besides those that are being opened while
/// another log-in counts: as many as it has counters of failures. The memory is that of ``places`` accounts, however many
/// log in.
public final class SessionTally: Sendable {
    /// Of so many log-ins one counts.
    static let interval = 8
    /// For how many accounts there is a place; 400 KiB.
    static let places = 16_384

    /// When the log-in that begins has to count.
    enum Duty {
        case never
        /// After it has opened its session: it has succeeded whether counting does or not.
        case after
        /// In the transaction that opens it: those before should have counted and have not.
        case within
    }

    private struct Place {
        let account: AccountID
        var opened: Int
    }

    private let interval: Int
    private let table: Mutex<[Place?]>

    /// - Parameter interval: 1 has every log-in count.
    public init(interval: Int? = nil) {
        self.interval = interval ?? Self.interval
        table = Mutex(Array(repeating: nil, count: Self.places))
    }

    /// A session of the account is about to be opened.
    func begin(_ account: AccountID) -> Duty {
        let opened = change(account) { $0 + 1 }
        return opened < interval ? .never : opened == interval ? .after : .within
    }

    /// It was not opened after all.
    func undo(_ account: AccountID) { change(account) { max($0 - 1, 0) } }

    /// The account has no more sessions than its plan allows, besides the one that is still to be opened.
    func counted(_ account: AccountID, before isBefore: Bool) { change(account) { _ in isBefore ? 1 : 0 } }

    @discardableResult
    private func change(_ account: AccountID, _ body: (Int) -> Int) -> Int {
        // Hashes are seeded anew in each process: nobody can choose accounts that share a place.
        let index = account.hashValue & (Self.places - 1)
        return table.withLock { table in
            var opened = interval - 1
            if let place = table[index], place.account == account { opened = place.opened }
            opened = body(opened)
            table[index] = Place(account: account, opened: opened)
            return opened
        }
    }
}
