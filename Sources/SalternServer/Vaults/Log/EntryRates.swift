internal import Postgres
internal import VaultLog

/// The rates at which a vault's members append entries, by the times of arrival.
///
/// Removals and the first seal after each cut have no limit by the hour, so no author keeps others from removing it.
/// Further seals have the limit by themselves: a log has room for few. A leave waits for nothing.
///
/// A manager and all members that it has invited, directly or through others, also share the limits of their branch.
/// A manager could otherwise invite a new member for each hour's entries.
struct EntryRates {
    /// The entries of an author in an hour.
    static let perHour: Int64 = 60
    /// The new generations by an author or a branch in a day, except for removals by the owner.
    static let generationsPerDay: Int64 = 32
    /// The entries of a branch in an hour.
    static let branchPerHour: Int64 = 256
    /// The entries of a branch in a week: a third of the numbers of a log.
    static let branchPerWeek: Int64 = 1_024

    let vaultID: VaultID
    let transaction: Transaction

    /// Checks an author's next entry.
    ///
    /// - Parameters:
    ///   - log: The log before the entry.
    ///   - isOwners: True for an entry of the vault's owner.
    func check(_ entry: Entry, after log: MembershipLog, isOwners: Bool, at now: Timestamp) async throws {
        let kind = entry.payload.kind
        if kind == .leave || (kind == .remove && isOwners) { return }
        if case .seal(let seal) = entry.payload, log.unsealed.contains(seal.author) { return }
        if !isOwners { try await checkBranch(of: entry, in: log, at: now) }
        let find = CountEntries(vaultID: vaultID, author: MemberID(entry.author.bytes), now: now)
        guard let count = try await transaction.execute(find).first else { return }
        switch kind {
        case .rotate: try Self.limit(count.lastRotation == nil ? 0 : 1, 1, since: count.lastRotation, 60, at: now)
        case .rekey: try Self.limit(count.lastRekey == nil ? 0 : 1, 1, since: count.lastRekey, 3_600, at: now)
        default: break
        }
        if kind == .rotate || kind == .remove {
            try Self.limit(
                count.generations, Self.generationsPerDay, since: count.firstGeneration, 86_400, at: now)
        }
        switch kind {
        case .remove: break
        case .seal: try Self.limit(count.seals, Self.perHour, since: count.firstSeal, 3_600, at: now)
        default: try Self.limit(count.inHour, Self.perHour, since: count.firstInHour, 3_600, at: now)
        }
    }

    private func checkBranch(of entry: Entry, in log: MembershipLog, at now: Timestamp) async throws {
        let branch = log.branch(of: entry)
        if branch.isEmpty { return }
        let find = CountBranch(vaultID: vaultID, authors: branch.map { MemberID($0.bytes) }, now: now)
        guard let count = try await transaction.execute(find).first else { return }
        switch entry.payload.kind {
        case .rotate, .remove:
            try Self.limit(
                count.generations, Self.generationsPerDay, since: count.firstGeneration, 86_400, at: now)
        default: break
        }
        if entry.payload.kind == .remove { return }
        try Self.limit(count.inHour, Self.branchPerHour, since: count.firstInHour, 3_600, at: now)
        try Self.limit(count.inWeek, Self.branchPerWeek, since: count.firstInWeek, 604_800, at: now)
    }

    /// Checks that fewer than `limit` entries are younger than some seconds.
    ///
    /// - Parameter first: The arrival of the earliest of them.
    private static func limit(
        _ count: Int64, _ limit: Int64, since first: Timestamp?, _ seconds: Int64, at now: Timestamp
    ) throws(VaultProblem) {
        guard count >= limit, let first else { return }
        let left = first.unixMicroseconds + seconds * 1_000_000 - now.unixMicroseconds
        if left > 0 { throw .tooManyEntries(wait: .microseconds(left)) }
    }
}

/// Counts the latest entries of an author. Entries that were put back have no time of arrival.
struct CountEntries: Statement {
    let vaultID: VaultID
    let author: MemberID
    let now: Timestamp

    private var inHour: Timestamp { now - Duration.seconds(3_600) }
    private var inDay: Timestamp { now - Duration.seconds(86_400) }

    struct Row: Sendable {
        /// The entries of the last hour that count.
        let inHour: Int64
        let firstInHour: Timestamp?
        /// The seals of the last hour.
        let seals: Int64
        let firstSeal: Timestamp?
        /// The new generations of the last day.
        let generations: Int64
        let firstGeneration: Timestamp?
        let lastRotation: Timestamp?
        let lastRekey: Timestamp?
    }

    private static let remove = SQLFragment(EntryKind.remove)
    private static let rotate = SQLFragment(EntryKind.rotate)
    private static let seal = SQLFragment(EntryKind.seal)
    private static let rekey = SQLFragment(EntryKind.rekey)

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT
            count(*) FILTER (WHERE e.arrived_at > \(\.inHour) AND e.kind NOT IN (\(remove), \(seal))),
            min(e.arrived_at) FILTER (WHERE e.arrived_at > \(\.inHour) AND e.kind NOT IN (\(remove), \(seal))),
            count(*) FILTER (WHERE e.arrived_at > \(\.inHour) AND e.kind = \(seal)),
            min(e.arrived_at) FILTER (WHERE e.arrived_at > \(\.inHour) AND e.kind = \(seal)),
            count(*) FILTER (WHERE e.kind IN (\(remove), \(rotate))),
            min(e.arrived_at) FILTER (WHERE e.kind IN (\(remove), \(rotate))),
            max(e.arrived_at) FILTER (WHERE e.kind = \(rotate)),
            max(e.arrived_at) FILTER (WHERE e.kind = \(rekey))
        FROM saltern.vault_entries e
        WHERE e.vault_id = \(\.vaultID) AND e.author = \(\.author) AND e.arrived_at > \(\.inDay)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Counts the latest entries of several authors.
struct CountBranch: Statement {
    let vaultID: VaultID
    let authors: [MemberID]
    let now: Timestamp

    private var inHour: Timestamp { now - Duration.seconds(3_600) }
    private var inDay: Timestamp { now - Duration.seconds(86_400) }
    private var inWeek: Timestamp { now - Duration.seconds(604_800) }

    struct Row: Sendable {
        let inHour: Int64
        let firstInHour: Timestamp?
        let inWeek: Int64
        let firstInWeek: Timestamp?
        /// The new generations of the last day.
        let generations: Int64
        let firstGeneration: Timestamp?
    }

    private static let remove = SQLFragment(EntryKind.remove)
    private static let rotate = SQLFragment(EntryKind.rotate)

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT
            count(*) FILTER (WHERE e.arrived_at > \(\.inHour)),
            min(e.arrived_at) FILTER (WHERE e.arrived_at > \(\.inHour)),
            count(*), min(e.arrived_at),
            count(*) FILTER (WHERE e.arrived_at > \(\.inDay) AND e.kind IN (\(remove), \(rotate))),
            min(e.arrived_at) FILTER (WHERE e.arrived_at > \(\.inDay) AND e.kind IN (\(remove), \(rotate)))
        FROM saltern.vault_entries e
        WHERE e.vault_id = \(\.vaultID) AND e.author = ANY(\(\.authors)::uuid[]) AND e.arrived_at > \(\.inWeek)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

extension MembershipLog {
    /// Returns the branch of an entry's author: the founder or a member that the owner has invited, the members that it
    /// has invited, theirs, and so on. A new member belongs to its inviter's; it is empty for the owner's invitations.
    fileprivate func branch(of entry: Entry) -> [VaultLog.MemberID] {
        var member = entry.author
        if case .join(let join) = entry.payload {
            guard let inviter = invitations[join.invitation]?.inviter, inviter != owner else { return [] }
            member = inviter
        }
        // An inviter has joined before.
        var roots: [VaultLog.MemberID: VaultLog.MemberID] = [:]
        for next in members.values.sorted(by: { $0.joined.number < $1.joined.number }) {
            let inviter = next.invitation.flatMap { invitations[$0]?.inviter }
            roots[next.id] = inviter.flatMap { $0 == owner ? nil : roots[$0] } ?? next.id
        }
        guard let root = roots[member] else { return [] }
        return roots.filter { $0.value == root }.map(\.key)
    }
}

extension SQLFragment {
    /// The number of a kind of entries.
    init(_ kind: EntryKind) { self = "\(Int64(kind.rawValue))" }
}

/// The server's check of the times of entries.
enum VaultTime {
    /// Checks that an entry can have been made now.
    static func check(_ entry: Entry, at now: Timestamp) throws(VaultProblem) {
        guard let present = EntryTime(seconds: seconds(now)), entry.time.isPlausible(at: present) else {
            throw .clockSkew(seconds: seconds(now))
        }
    }

    /// Checks that an entry can have been made earlier.
    static func checkPast(_ entry: Entry, at now: Timestamp) throws(VaultProblem) {
        guard let present = EntryTime(seconds: seconds(now)), entry.time.isPossible(at: present) else {
            throw .clockSkew(seconds: seconds(now))
        }
    }

    /// Checks that an entry can have been made after an earlier one, by a device whose clock differs within the bounds.
    static func checkOrder(_ entry: Entry, after earlier: EntryTime, at now: Timestamp) throws(VaultProblem) {
        guard entry.time.seconds + 2 * EntryTime.tolerance >= earlier.seconds else {
            throw .clockSkew(seconds: seconds(now))
        }
    }

    /// Returns a time in whole seconds since 1970.
    static func seconds(_ now: Timestamp) -> UInt64 { UInt64(max(now.unixMicroseconds / 1_000_000, 0)) }
}
