public import Postgres

/// The rows that are due at the moment: their number, and the age of the oldest.
///
/// Ended sessions are not included: no index finds them, and each purge scans all sessions.
public struct PurgeBacklog: Sendable, Equatable {
    /// The maximum count of rows of a kind.
    public static let countLimit = 1_000

    /// The due rows of one kind, of accounts and vaults.
    public struct Part: Sendable, Equatable {
        /// The kind's name in ``Purge/Report``.
        public let kind: String
        /// The number of due rows, at most ``PurgeBacklog/countLimit``.
        public let rows: Int
        /// The time since which the oldest one is due. Zero if none is.
        public let overdue: Duration

        init(kind: String, rows: Int, overdue: Duration) {
            self.kind = kind
            self.rows = rows
            self.overdue = overdue
        }

        /// - Parameter due: The times since which rows are due.
        fileprivate init(kind: String, due: [Timestamp], by moment: Timestamp) {
            // Contents that a rotation's commit has expired have the epoch as expiry, not a time.
            let oldest = due.lazy.filter { $0.unixMicroseconds > 0 }.min()
            self.init(
                kind: kind, rows: min(due.count, PurgeBacklog.countLimit), overdue: oldest.map { moment - $0 } ?? .zero)
        }
    }

    public let parts: [Part]

    /// Reads a limited number of rows by each index of the purge.
    ///
    /// - Parameters:
    ///   - database: Has the rights of the server's role.
    ///   - policy: The retention of rows.
    ///   - now: The time from which ages are counted.
    /// - Throws: A `PostgresError`.
    public static func read(
        _ database: PostgresClient, policy: PurgePolicy, now: Timestamp
    ) async throws -> PurgeBacklog {
        let tombstonesBefore = now - policy.tombstoneRetention
        let eventsBefore = now - policy.eventRetention
        let attemptsBefore = now - AttemptPolicy.retention
        // On a dedicated connection, so that a slow database delays no requests.
        return try await database.withConnection { connection in
            PurgeBacklog(parts: [
                try await sharedPart(FindDueTombstones.self, tombstonesBefore, connection),
                try await sharedPart(FindDueContents.self, now, connection),
                try await part(FindDueKeyrings.self, now, connection),
                try await part(FindDueChallenges.self, now, connection),
                try await sharedPart(FindDueVersions.self, now, connection),
                try await part(FindDueRotations.self, now, connection),
                try await part(FindDueEvents.self, eventsBefore, connection),
                try await part(FindDueAttempts.self, attemptsBefore, connection),
                try await part(FindDueShares.self, now, connection),
                try await part(FindDueInvitations.self, now, connection),
            ])
        }
    }

    private static func part<Rows: DueRows>(
        _ rows: Rows.Type, _ moment: Timestamp, _ connection: PostgresLease
    ) async throws -> Part {
        let due = try await connection.execute(Rows(moment: moment, limit: Int64(countLimit)))
        return Part(kind: Rows.kind, due: due, by: moment)
    }

    /// Reads rows that accounts and vaults have, each by its own index.
    private static func sharedPart<Rows: DueRows>(
        _ rows: Rows.Type, _ moment: Timestamp, _ connection: PostgresLease
    ) async throws -> Part {
        let find = Rows(moment: moment, limit: Int64(countLimit))
        var due = try await connection.execute(find)
        due += try await connection.execute(StepInVault(step: find))
        return Part(kind: Rows.kind, due: due, by: moment)
    }
}

/// Finds the times since which rows of one kind are due.
protocol DueRows: Statement where Row == Timestamp {
    /// The kind's name in ``Purge/Report``.
    static var kind: String { get }
    /// Rows with this or an earlier time are due.
    var moment: Timestamp { get }
    /// Maximum number of rows.
    var limit: Int64 { get }

    init(moment: Timestamp, limit: Int64)
}

extension DueRows {
    static var isReadOnly: Bool { true }
}

/// Finds the oldest rows of a table by an index of the purge.
protocol OldestRows: DueRows {
    static var time: SQLFragment { get }
    /// The table, with its alias.
    static var table: SQLFragment { get }
    /// The condition of the partial index.
    static var condition: SQLFragment { get }
}

extension OldestRows {
    static var condition: SQLFragment { "true" }
    static var sql: SQL<Self> {
        """
        SELECT \(time) FROM \(table) WHERE \(condition) AND \(time) <= \(\.moment) ORDER BY \(time) LIMIT \(\.limit)
        """
    }
}

/// Finds the times of tombstones, by the index `tombstones_by_age`.
struct FindDueTombstones: OldestRows {
    static let kind = "tombstones"
    static let time: SQLFragment = "i.updated_at"
    static let table: SQLFragment = "saltern.items i"
    static let condition: SQLFragment = "i.deleted AND i.updated_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// Finds the expiry times of kept contents, by the index `deleted_contents_by_expiry`.
struct FindDueContents: OldestRows {
    static let kind = "contents"
    static let time: SQLFragment = "k.expires_at"
    static let table: SQLFragment = "saltern.deleted_contents k"
    static let condition: SQLFragment = "k.created_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// Finds the expiry times of older versions of items, by the index `replaced_contents_by_expiry`.
struct FindDueVersions: OldestRows {
    static let kind = "versions"
    static let time: SQLFragment = "v.expires_at"
    static let table: SQLFragment = "saltern.replaced_contents v"
    static let condition: SQLFragment = "v.replaced_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// Finds the expiry times of rotations, by the index `rotations_by_expiry`.
struct FindDueRotations: OldestRows {
    static let kind = "rotations"
    static let time: SQLFragment = "r.expires_at"
    static let table: SQLFragment = "saltern.rotations r"

    let moment: Timestamp
    let limit: Int64
}

/// Finds the times of events, by the index `security_events_by_age`.
struct FindDueEvents: OldestRows {
    static let kind = "events"
    static let time: SQLFragment = "e.occurred_at"
    static let table: SQLFragment = "saltern.security_events e"
    static let condition: SQLFragment = "e.occurred_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// Finds the times of the last failure of counters, by the index `failed_attempts_by_age`. Only the oldest counters are
/// scanned, so that active ones do not prolong the scan.
struct FindDueAttempts: DueRows {
    static let kind = "attempts"
    static let sql: SQL<Self> = """
        SELECT c.last_failed_at FROM (
            SELECT f.last_failed_at FROM saltern.failed_attempts f WHERE f.first_failed_at <= \(\.moment)
            ORDER BY f.first_failed_at LIMIT 50000
        ) c WHERE c.last_failed_at <= \(\.moment) LIMIT \(\.limit)
        """

    let moment: Timestamp
    let limit: Int64
}

/// Finds the ends of shares, by the index `shares_by_expiry`.
struct FindDueShares: OldestRows {
    static let kind = "shares"
    static let time: SQLFragment = "s.expires_at"
    static let table: SQLFragment = "saltern.shares s"

    let moment: Timestamp
    let limit: Int64
}

/// Finds the expiry times of invitations to vaults, by the index `vault_invitations_by_expiry`.
struct FindDueInvitations: OldestRows {
    static let kind = "invitations"
    static let time: SQLFragment = "i.expires_at"
    static let table: SQLFragment = "saltern.vault_invitations i"

    let moment: Timestamp
    let limit: Int64
}
