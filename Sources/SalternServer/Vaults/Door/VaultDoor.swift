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
/// statement that waits for no lock. A listed membership may have ended since, or have a lower role; the transaction
/// itself detects that. A request above the listed role is checked first as well.
final class KnownSeats: Sendable {
    /// The number of entries; 640 KiB in all. An evicted member is checked again.
    private static let places = 16_384

    private struct Seat: Hashable {
        let account: AccountID
        let vault: VaultID
    }

    private let table = Mutex([(seat: Seat, role: VaultRole)?](repeating: nil, count: places))

    /// Returns true for a member that was found with a role, or a higher one.
    func contains(_ account: AccountID, in vault: VaultID, atLeast role: VaultRole) -> Bool {
        let seat = Seat(account: account, vault: vault)
        return table.withLock { table in
            table[Self.place(of: seat)].map { $0.seat == seat && $0.role >= role } ?? false
        }
    }

    func insert(_ account: AccountID, in vault: VaultID, as role: VaultRole) {
        let seat = Seat(account: account, vault: vault)
        table.withLock { $0[Self.place(of: seat)] = (seat, role) }
    }

    /// Removes an account that was found to be no member, or to have too low a role.
    func remove(_ account: AccountID, from vault: VaultID) {
        let seat = Seat(account: account, vault: vault)
        table.withLock { table in
            let place = Self.place(of: seat)
            if table[place]?.seat == seat { table[place] = nil }
        }
    }

    private static func place(of seat: Seat) -> Int { seat.hashValue & (places - 1) }
}

/// The requests of each member that a vault has accepted on this node and not ended.
///
/// A vault has one queue, so a few members could otherwise fill it. Their shares shrink while it fills.
final class VaultQueues: Sendable {
    /// The queues of a vault.
    enum Lane: Hashable {
        case items
        /// Apart from items, so that no number of writes keeps a removal waiting.
        case log

        /// Maximum number of requests of one account.
        ///
        /// - Parameter count: The vault's requests of all accounts.
        func limit(of count: Int) -> Int {
            if count >= PostgresClient.waitersPerKey - 8 { return 1 }
            return self == .items && count < PostgresClient.waitersPerKey / 2 ? 16 : 4
        }

        func key(of vault: VaultID, for member: AccountID) -> RequestKey {
            switch self {
            case .items: .vault(vault, of: member)
            case .log: .vaultLog(vault, of: member)
            }
        }
    }

    private struct Key: Hashable {
        let vault: VaultID
        let lane: Lane
    }

    /// The requests of a vault's lane by account.
    private struct Line {
        var counts: [AccountID: Int] = [:]
        var total = 0
    }

    private let lines = Mutex<[Key: Line]>([:])

    /// Runs the request of a member.
    ///
    /// - Throws: `PostgresError.queueFull`, or an error of `body`.
    func run<Result>(
        _ account: AccountID, _ vault: VaultID, _ lane: Lane, _ body: () async throws -> Result
    ) async throws -> Result {
        let key = Key(vault: vault, lane: lane)
        let isAdmitted = lines.withLock { lines in
            let line = lines[key, default: Line()]
            let count = line.counts[account, default: 0]
            guard count < lane.limit(of: line.total) else { return false }
            lines[key, default: line].counts[account] = count + 1
            lines[key, default: line].total += 1
            return true
        }
        guard isAdmitted else { throw PostgresError.queueFull }
        defer { lines.withLock { Self.end(account, &$0[key]) } }
        return try await body()
    }

    private static func end(_ account: AccountID, _ line: inout Line?) {
        guard let count = line?.counts[account] else { return }
        line?.counts[account] = count == 1 ? nil : count - 1
        line?.total -= 1
        if line?.total == 0 { line = nil }
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
