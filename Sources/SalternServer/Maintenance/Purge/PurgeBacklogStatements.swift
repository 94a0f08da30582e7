internal import Postgres

/// Since when rows of one kind have been what a purge removes.
protocol DueRows: Statement where Row == Timestamp {
    /// The name that ``Purge/Report`` has for it.
    static var kind: String { get }
    /// What is due has this time or an earlier one.
    var moment: Timestamp { get }
    /// No more than so many.
    var limit: Int64 { get }

    init(moment: Timestamp, limit: Int64)
}

extension DueRows {
    static var isReadOnly: Bool { true }
}

/// The oldest rows of a table, by an index that the purge goes by.
protocol OldestRows: DueRows {
    static var time: SQLFragment { get }
    /// The table, with its alias.
    static var table: SQLFragment { get }
    /// Which rows may be due.
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

/// When tombstones were left, by the index `tombstones_by_age`.
struct FindDueTombstones: OldestRows {
    static let kind = "tombstones"
    static let time: SQLFragment = "i.updated_at"
    static let table: SQLFragment = "saltern.items i"
    static let condition: SQLFragment = "i.deleted AND i.updated_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// When kept contents expire, by the index `deleted_contents_by_expiry`.
struct FindDueContents: OldestRows {
    static let kind = "contents"
    static let time: SQLFragment = "k.expires_at"
    static let table: SQLFragment = "saltern.deleted_contents k"
    static let condition: SQLFragment = "k.created_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// When older versions of items expire, by the index `replaced_contents_by_expiry`.
struct FindDueVersions: OldestRows {
    static let kind = "versions"
    static let time: SQLFragment = "v.expires_at"
    static let table: SQLFragment = "saltern.replaced_contents v"
    static let condition: SQLFragment = "v.replaced_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// When rotations expire, by the index `rotations_by_expiry`.
struct FindDueRotations: OldestRows {
    static let kind = "rotations"
    static let time: SQLFragment = "r.expires_at"
    static let table: SQLFragment = "saltern.rotations r"

    let moment: Timestamp
    let limit: Int64
}

/// When events happened, by the index `security_events_by_age`.
struct FindDueEvents: OldestRows {
    static let kind = "events"
    static let time: SQLFragment = "e.occurred_at"
    static let table: SQLFragment = "saltern.security_events e"
    static let condition: SQLFragment = "e.occurred_at > '-infinity'"

    let moment: Timestamp
    let limit: Int64
}

/// When counters of failures were added to last, by the index `failed_attempts_by_age`: among the oldest ones, so that those
/// that somebody goes on adding to make the walk no longer than that.
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

/// When shares end, by the index `shares_by_expiry`.
struct FindDueShares: OldestRows {
    static let kind = "shares"
    static let time: SQLFragment = "s.expires_at"
    static let table: SQLFragment = "saltern.shares s"

    let moment: Timestamp
    let limit: Int64
}
