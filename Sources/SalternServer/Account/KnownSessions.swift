internal import Synchronization

/// Sessions that this node has found to be live: their requests may wait where the writes of their account wait.
///
/// A token names its account, and everybody can make another one that does: a device that was logged out, a thief, who has
/// seen the account's id in a log. What they send must not fill the account's queue, nor hold its turn. So a session that
/// is not known here is looked up first, by a statement that waits for nobody. What is known may have ended since; the
/// statement itself finds that out, and then it is known no more.
public final class KnownSessions: Sendable {
    /// For how many sessions there is a place; 640 KiB. One that has lost its place is looked up again.
    static let places = 16_384

    private let table = Mutex([TokenHash?](repeating: nil, count: places))

    public init() {}

    func contains(_ session: TokenHash) -> Bool {
        table.withLock { $0[Self.place(of: session)] == session }
    }

    /// The session is live.
    func insert(_ session: TokenHash) {
        table.withLock { $0[Self.place(of: session)] = session }
    }

    /// The session is not live.
    func remove(_ session: TokenHash) {
        table.withLock { table in
            let place = Self.place(of: session)
            if table[place] == session { table[place] = nil }
        }
    }

    /// Hashes are seeded anew in each process: nobody can choose sessions that share a place.
    private static func place(of session: TokenHash) -> Int { session.hashValue & (places - 1) }
}
