internal import Postgres
internal import VaultLog

/// The rates at which a vault's members append entries, by the times of arrival.
///
/// Removals and the first seal after each cut have no limit by the hour, so no author keeps others from removing it.
/// Further seals have the limit by themselves: a log has room for few. A leave waits for nothing.
///
/// All members but the owner also share a budget: a member that joins again has a new id, and would begin at zero.
/// Each removal by the owner renews the budget. The owner's entries, joins by its invitations, and entries that earlier
/// ones bound need none.
struct EntryRates {
    /// The entries of an author in an hour.
    static let perHour: Int64 = 60
    /// The new generations by an author in a day, except for removals by the owner.
    static let generationsPerDay: Int64 = 32
    /// The entries of all others than the owner in a day: the joins of a full vault, and as many again.
    static let othersPerDay: Int64 = 256
    /// The entries of all others than the owner in a year: a third of the numbers of a log.
    static let othersPerYear: Int64 = 1_024
    /// The rotations of all others than the owner in a day.
    static let othersRotationsPerDay: Int64 = 32

    let vaultID: VaultID
    let transaction: Transaction

    /// Checks an author's next entry.
    ///
    /// - Parameters:
    ///   - log: The log before the entry.
    ///   - owner: The vault's owner.
    func check(_ entry: Entry, after log: MembershipLog, owner: MemberID, at now: Timestamp) async throws {
        let kind = entry.payload.kind
        let author = MemberID(entry.author.bytes)
        if kind == .leave || (kind == .remove && author == owner) { return }
        if case .seal(let seal) = entry.payload, log.unsealed.contains(seal.author) { return }
        let find = CountEntries(vaultID: vaultID, author: author, owner: owner, now: now)
        guard let count = try await transaction.execute(find).first else { return }
        try checkAuthor(kind, count, at: now)
        if author == owner || log.isInvitedByOwner(entry) { return }
        try checkOthers(entry, after: log, count, at: now)
    }

    private func checkAuthor(_ kind: EntryKind, _ count: CountEntries.Row, at now: Timestamp) throws(VaultProblem) {
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

    private func checkOthers(
        _ entry: Entry, after log: MembershipLog, _ count: CountEntries.Row, at now: Timestamp
    ) throws(VaultProblem) {
        if entry.payload.kind == .rotate {
            let last = count.othersLastRotation
            try Self.limit(last == nil ? 0 : 1, 1, since: last, 60, at: now)
            try Self.limit(
                count.othersGenerations, Self.othersRotationsPerDay, since: count.othersFirstGeneration, 86_400, at: now
            )
        }
        if Self.isBounded(entry, by: log, count) { return }
        try Self.limit(count.othersInDay, Self.othersPerDay, since: count.othersFirstInDay, 86_400, at: now)
        try Self.limit(
            count.othersInYear, Self.othersPerYear, since: count.othersFirstInYear, 31_536_000, at: now)
    }

    /// Returns true for an entry that earlier ones bound. It takes rights away, or answers one of them: a used-up
    /// budget must not prevent it.
    private static func isBounded(_ entry: Entry, by log: MembershipLog, _ count: CountEntries.Row) -> Bool {
        switch entry.payload {
        case .remove, .revoke, .accept: true
        case .role(let member, let role): log.members[member]?.role.map { role < $0 } ?? false
        case .rotate: log.isRotationDue
        case .rekey: count.rekeysInYear == 0
        default: false
        }
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

/// Counts the latest entries of an author, and of all others than the owner. Entries that were put back have no time of
/// arrival.
struct CountEntries: Statement {
    let vaultID: VaultID
    let author: MemberID
    let owner: MemberID
    let now: Timestamp

    private var inHour: Timestamp { now - Duration.seconds(3_600) }
    private var inDay: Timestamp { now - Duration.seconds(86_400) }
    private var inYear: Timestamp { now - Duration.seconds(31_536_000) }

    struct Row: Sendable {
        /// The author's entries of the last hour that count.
        let inHour: Int64
        let firstInHour: Timestamp?
        /// The author's seals of the last hour.
        let seals: Int64
        let firstSeal: Timestamp?
        /// The author's new generations of the last day.
        let generations: Int64
        let firstGeneration: Timestamp?
        let lastRotation: Timestamp?
        let lastRekey: Timestamp?
        /// The author's changes of keys in the last year.
        let rekeysInYear: Int64
        /// The entries of others than the owner, since the owner's latest removal or its acceptance.
        let othersInDay: Int64
        let othersFirstInDay: Timestamp?
        let othersInYear: Int64
        let othersFirstInYear: Timestamp?
        /// Their new generations of the last day.
        let othersGenerations: Int64
        let othersFirstGeneration: Timestamp?
        let othersLastRotation: Timestamp?
    }

    private static let remove = SQLFragment(EntryKind.remove)
    private static let rotate = SQLFragment(EntryKind.rotate)
    private static let seal = SQLFragment(EntryKind.seal)
    private static let rekey = SQLFragment(EntryKind.rekey)
    private static let accept = SQLFragment(EntryKind.accept)

    private static let isAuthors: SQL<Self> = "e.author = \(\.author) AND e.arrived_at > \(\.inDay)"
    private static let isLately: SQL<Self> = "e.author = \(\.author) AND e.arrived_at > \(\.inHour)"
    private static let isOthers: SQL<Self> = "e.author <> \(\.owner) AND e.number > start.number"
    private static let isGeneration: SQLFragment = "e.kind IN (\(remove), \(rotate))"

    static let isReadOnly = true
    // Materialized, because without statistics the planner counts the entries again for each entry.
    static let sql: SQL<Self> = """
        WITH start AS MATERIALIZED (
            SELECT coalesce(max(o.number), 0) AS number
            FROM saltern.vault_entries o
            WHERE o.vault_id = \(\.vaultID) AND o.author = \(\.owner) AND o.kind IN (\(remove), \(accept))
                AND o.arrived_at > \(\.inYear)
        )
        SELECT
            count(*) FILTER (WHERE \(isLately) AND e.kind NOT IN (\(remove), \(seal))),
            min(e.arrived_at) FILTER (WHERE \(isLately) AND e.kind NOT IN (\(remove), \(seal))),
            count(*) FILTER (WHERE \(isLately) AND e.kind = \(seal)),
            min(e.arrived_at) FILTER (WHERE \(isLately) AND e.kind = \(seal)),
            count(*) FILTER (WHERE \(isAuthors) AND \(isGeneration)),
            min(e.arrived_at) FILTER (WHERE \(isAuthors) AND \(isGeneration)),
            max(e.arrived_at) FILTER (WHERE \(isAuthors) AND e.kind = \(rotate)),
            max(e.arrived_at) FILTER (WHERE \(isAuthors) AND e.kind = \(rekey)),
            count(*) FILTER (WHERE e.author = \(\.author) AND e.kind = \(rekey)),
            count(*) FILTER (WHERE \(isOthers) AND e.arrived_at > \(\.inDay)),
            min(e.arrived_at) FILTER (WHERE \(isOthers) AND e.arrived_at > \(\.inDay)),
            count(*) FILTER (WHERE \(isOthers)),
            min(e.arrived_at) FILTER (WHERE \(isOthers)),
            count(*) FILTER (WHERE \(isOthers) AND e.arrived_at > \(\.inDay) AND \(isGeneration)),
            min(e.arrived_at) FILTER (WHERE \(isOthers) AND e.arrived_at > \(\.inDay) AND \(isGeneration)),
            max(e.arrived_at) FILTER (WHERE \(isOthers) AND e.kind = \(rotate))
        FROM start CROSS JOIN saltern.vault_entries e
        WHERE e.vault_id = \(\.vaultID) AND e.arrived_at > \(\.inYear)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

extension MembershipLog {
    /// Returns true for a join by an invitation of the owner. Its uses bound such joins.
    fileprivate func isInvitedByOwner(_ entry: Entry) -> Bool {
        guard case .join(let join) = entry.payload else { return false }
        return invitations[join.invitation]?.inviter == owner
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
