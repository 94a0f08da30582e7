internal import Synchronization

/// State that the loops of a node share. Most of it limits callers without authentication.
public struct NodeState: Sendable {
    /// Rate limits of client addresses.
    public let addresses: RateLimiter
    /// Queues of attempts at the same failure counter.
    public let counterQueue: CounterQueue
    /// Readiness of the database.
    let readiness: Readiness
    /// Running checks of secrets.
    public let checks: ActiveSecretChecks
    /// Log-ins since the last count of an account's sessions.
    let sessions: SessionTally
    /// Sessions whose requests may queue for their account.
    let knownSessions = KnownSessions()
    /// Admission of requests about vaults.
    let vaults: VaultDoor
    /// Running exports.
    let exports = RunningExports()

    /// - Parameters:
    ///   - limits: Rate limits of addresses.
    ///   - sessions: Decides the log-ins at which an account's sessions are counted.
    ///   - readinessDeadline: The time limit of the query for readiness.
    ///   - time: The time since any fixed moment. Nil for the system's.
    public init(
        _ limits: RateLimits, sessions: SessionTally = SessionTally(), readinessDeadline: Duration = .seconds(2),
        time: (@Sendable () -> Duration)? = nil
    ) {
        addresses = RateLimiter(limits, time: time)
        counterQueue = CounterQueue()
        let start = ContinuousClock.now
        let time = time ?? { ContinuousClock.now - start }
        readiness = Readiness(deadline: readinessDeadline, time: time)
        vaults = VaultDoor(time: time)
        checks = ActiveSecretChecks()
        self.sessions = sessions
    }
}

/// Sessions that this node has recently found live. Only their requests may queue for their account's writes.
///
/// A token contains its account's id, so anyone who has seen the id can construct one: a logged-out device, a reader of
/// a log. Such requests must not fill the account's queue or occupy its permit. A session that is absent here is
/// therefore checked first, by a statement that waits for no lock. A listed session may have ended since; the statement
/// itself detects that, and the session is removed.
public final class KnownSessions: Sendable {
    /// The number of entries; 640 KiB in all. An evicted session is checked again.
    static let places = 16_384

    private let table = Mutex([TokenHash?](repeating: nil, count: places))

    public init() {}

    func contains(_ session: TokenHash) -> Bool {
        table.withLock { $0[Self.place(of: session)] == session }
    }

    /// Adds a session that was found live.
    func insert(_ session: TokenHash) {
        table.withLock { $0[Self.place(of: session)] = session }
    }

    /// Removes a session that was found not live.
    func remove(_ session: TokenHash) {
        table.withLock { table in
            let place = Self.place(of: session)
            if table[place] == session { table[place] = nil }
        }
    }

    /// Returns a session's index. Hashes are seeded in each process, so clients cannot choose sessions that share an
    /// index.
    private static func place(of session: TokenHash) -> Int { session.hashValue & (places - 1) }
}
