internal import Postgres

/// Finds subjects whose last failure is older than `before`, by the index `failed_attempts_by_age`.
struct FindOldAttempts: Statement {
    typealias Row = AttemptSubject

    let before: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT f.subject FROM saltern.failed_attempts f
        WHERE f.first_failed_at <= \(\.before) AND f.last_failed_at <= \(\.before)
            ORDER BY f.first_failed_at LIMIT \(\.limit)
        """
}

/// Removes failures of subjects without later ones. Returns the number of removed rows.
struct RemoveOldAttempts: Statement {
    typealias Row = Int64

    let subjects: [AttemptSubject]
    let before: Timestamp

    static let sql: SQL<Self> = """
        WITH idle AS (
            SELECT f.subject, f.counter FROM saltern.failed_attempts f
            WHERE f.subject = ANY(\(\.subjects)) AND f.last_failed_at <= \(\.before)
            FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM saltern.failed_attempts d USING idle i
            WHERE d.subject = ANY(\(\.subjects)) AND d.subject = i.subject AND d.counter = i.counter
            RETURNING d.subject
        )
        SELECT count(*) FROM gone
        """
}
