internal import Postgres
internal import Synchronization

/// State of a node by which requests about vaults are admitted. All loops share it.
final class VaultDoor: Sendable {
    let logs = LogCache()
    let seats = KnownSeats()
    let queues = VaultQueues()
    /// Rejected requests about logs, by account.
    let refusals: SubjectLimiter
    /// Openings, by invitation.
    let openings: SubjectLimiter

    /// - Parameter time: The time since any fixed moment.
    init(time: @escaping @Sendable () -> Duration) {
        refusals = SubjectLimiter(burst: 60, interval: .seconds(1), time: time)
        openings = SubjectLimiter(burst: 64, interval: .seconds(1), time: time)
    }
}

/// Members of vaults that this node has recently found. Only their requests may queue for the vault.
///
/// The id of a vault is in links, and former members have it. Their requests are therefore checked first, by a
/// statement that waits for no lock. A listed membership may have ended since; the transaction itself detects that.
final class KnownSeats: Sendable {
    /// The number of entries; 528 KiB in all. An evicted member is checked again.
    private static let places = 16_384

    private struct Seat: Hashable {
        let account: AccountID
        let vault: VaultID
    }

    private let table = Mutex([Seat?](repeating: nil, count: places))

    func contains(_ account: AccountID, in vault: VaultID) -> Bool {
        let seat = Seat(account: account, vault: vault)
        return table.withLock { $0[Self.place(of: seat)] == seat }
    }

    func insert(_ account: AccountID, in vault: VaultID) {
        let seat = Seat(account: account, vault: vault)
        table.withLock { $0[Self.place(of: seat)] = seat }
    }

    /// Removes an account that was found to be no member.
    func remove(_ account: AccountID, from vault: VaultID) {
        let seat = Seat(account: account, vault: vault)
        table.withLock { table in
            let place = Self.place(of: seat)
            if table[place] == seat { table[place] = nil }
        }
    }

    private static func place(of seat: Seat) -> Int { seat.hashValue & (places - 1) }
}

/// The requests of each member that a vault has accepted on this node and not ended.
///
/// A vault has one queue, so one member could otherwise fill it. While many requests wait, each account has fewer
/// places, so a few members cannot fill it either.
final class VaultQueues: Sendable {
    /// The queues of a vault.
    enum Lane: Hashable {
        case items
        /// Apart from items, so that no number of writes keeps a removal waiting.
        case log

        /// Maximum number of requests of one account.
        ///
        /// - Parameter total: The number of requests of all accounts.
        func limit(of total: Int) -> Int {
            switch self {
            case .items: total < 32 ? 16 : 4
            case .log: total < 32 ? 4 : 2
            }
        }

        func key(of vault: VaultID) -> RequestKey {
            switch self {
            case .items: .vault(vault)
            case .log: .vaultLog(vault)
            }
        }
    }

    private struct Key: Hashable {
        /// Nil for all accounts together.
        var account: AccountID?
        let vault: VaultID
        let lane: Lane
    }

    private let counts = Mutex<[Key: Int]>([:])

    /// Runs the request of a member.
    ///
    /// - Throws: `PostgresError.queueFull`, or an error of `body`.
    func run<Result>(
        _ account: AccountID, _ vault: VaultID, _ lane: Lane, _ body: () async throws -> Result
    ) async throws -> Result {
        let (own, all) = (Key(account: account, vault: vault, lane: lane), Key(vault: vault, lane: lane))
        let isAdmitted = counts.withLock { counts in
            let (count, total) = (counts[own, default: 0], counts[all, default: 0])
            guard count < lane.limit(of: total) else { return false }
            counts[own] = count + 1
            counts[all] = total + 1
            return true
        }
        guard isAdmitted else { throw PostgresError.queueFull }
        defer {
            counts.withLock { counts in
                for key in [own, all] {
                    let count = counts[key, default: 1] - 1
                    counts[key] = count == 0 ? nil : count
                }
            }
        }
        return try await body()
    }
}

/// Token buckets of subjects with a UUID. Memory is bounded: the fullest buckets are evicted.
final class SubjectLimiter: Sendable {
    private let table = Mutex(BucketTable())
    private let interval: Int64
    private let tolerance: Int64
    private let time: @Sendable () -> Duration

    /// - Parameters:
    ///   - burst: The tokens of a full bucket.
    ///   - interval: The time until the next token.
    init(burst: Int, interval: Duration, time: @escaping @Sendable () -> Duration) {
        self.interval = Self.nanoseconds(interval)
        tolerance = self.interval * Int64(burst - 1)
        self.time = time
    }

    /// Takes a token. Returns the time until the next one if there is none.
    @discardableResult
    func take(_ subject: UUID) -> Duration? { ask(subject, isTaking: true) }

    /// Returns the time until the next token if there is none.
    func wait(of subject: UUID) -> Duration? { ask(subject, isTaking: false) }

    private func ask(_ subject: UUID, isTaking: Bool) -> Duration? {
        let key = BucketTable.Key(network: subject.high ^ subject.low, rateClass: 0)
        let now = Self.nanoseconds(time())
        let wait = table.withLock { table in
            let fullAt = max(table.fullAt(key), now)
            let wait = fullAt - now - tolerance
            if isTaking, wait <= 0 { table.set(key, fullAt: fullAt + interval) }
            return wait
        }
        return wait <= 0 ? nil : .nanoseconds(wait)
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
