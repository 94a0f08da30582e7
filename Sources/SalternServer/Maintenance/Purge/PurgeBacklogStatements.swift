internal import Postgres

/// When the oldest tombstones of all accounts were left, by the index `tombstones_by_age`.
struct FindDueTombstones: Statement {
    typealias Row = Timestamp

    let before: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT i.updated_at FROM saltern.items i
        WHERE i.deleted AND i.updated_at <= \(\.before) AND i.updated_at > '-infinity'
        ORDER BY i.updated_at LIMIT \(\.limit)
        """
}

/// When the kept contents of all accounts have expired, by the index `deleted_contents_by_expiry`.
struct FindDueContents: Statement {
    typealias Row = Timestamp

    let now: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT k.expires_at FROM saltern.deleted_contents k
        WHERE k.expires_at <= \(\.now) AND k.created_at > '-infinity'
        ORDER BY k.expires_at LIMIT \(\.limit)
        """
}

/// When the rotations of all accounts have expired, by the index `rotations_by_expiry`.
struct FindDueRotations: Statement {
    typealias Row = Timestamp

    let now: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT r.expires_at FROM saltern.rotations r WHERE r.expires_at <= \(\.now)
        ORDER BY r.expires_at LIMIT \(\.limit)
        """
}

/// When the oldest events of all accounts happened, by the index `security_events_by_age`.
struct FindDueEvents: Statement {
    typealias Row = Timestamp

    let before: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.occurred_at FROM saltern.security_events e
        WHERE e.occurred_at <= \(\.before) AND e.occurred_at > '-infinity'
        ORDER BY e.occurred_at LIMIT \(\.limit)
        """
}

/// When the counters of failures that are due were added to last, by the index `failed_attempts_by_age`: among the oldest ones,
/// so that those that somebody goes on adding to make the walk no longer than that.
struct FindDueAttempts: Statement {
    typealias Row = Timestamp

    let before: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT c.last_failed_at FROM (
            SELECT f.last_failed_at FROM saltern.failed_attempts f WHERE f.first_failed_at <= \(\.before)
            ORDER BY f.first_failed_at LIMIT 50000
        ) c WHERE c.last_failed_at <= \(\.before) LIMIT \(\.limit)
        """
}

/// When the shares that ended first have ended, by the index `shares_by_expiry`.
struct FindDueShares: Statement {
    typealias Row = Timestamp

    let now: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.expires_at FROM saltern.shares s WHERE s.expires_at <= \(\.now)
        ORDER BY s.expires_at LIMIT \(\.limit)
        """
}
