internal import Postgres

/// Failures of one subject since its last success.
struct FailedAttempts: Sendable {
    let count: Int64
    let since: Timestamp
    let last: Timestamp
    /// No attempt is looked at before.
    let blockedUntil: Timestamp
}

/// The failures of a subject; no row when there are none.
struct FindFailedAttempts: Statement {
    let subject: AttemptSubject

    static let isReadOnly = true
    static let sql = """
        SELECT f.failures::bigint, f.first_failed_at, f.last_failed_at, f.blocked_until
        FROM saltern.failed_attempts f WHERE f.subject = $1
        """

    func bind(to parameters: inout Parameters) { parameters.append(subject) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> FailedAttempts {
        FailedAttempts(
            count: try row.next(), since: try row.next(), last: try row.next(), blockedUntil: try row.next())
    }
}

/// Counts a failure, and says until when the subject is blocked.
///
/// The delays are bound, not computed: PostgreSQL's arithmetic with times is not immutable, and distributed PostgreSQL
/// takes nothing else in `ON CONFLICT`.
struct RecordFailedAttempt: Statement {
    let subject: AttemptSubject
    let now: Timestamp

    static let sql = """
        INSERT INTO saltern.failed_attempts AS f
            (subject, failures, streak, first_failed_at, last_failed_at, blocked_until)
        VALUES ($1, 1, 1, $2, $2, ($4::timestamptz[])[1])
        ON CONFLICT (subject) DO UPDATE SET
            failures = LEAST(f.failures, 1000000000) + 1,
            streak = CASE WHEN f.last_failed_at <= $3 THEN 1 ELSE LEAST(f.streak, 1000000000) + 1 END,
            last_failed_at = GREATEST(f.last_failed_at, excluded.last_failed_at),
            blocked_until = CASE WHEN f.last_failed_at <= $3 THEN excluded.blocked_until
                ELSE ($4::timestamptz[])[LEAST(f.streak + 1, cardinality($4::timestamptz[]))] END
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(subject)
        parameters.append(now)
        parameters.append(now - AttemptPolicy.memory)
        parameters.append(AttemptPolicy.blocks(failingAt: now))
    }
}

/// Forgets the failures of a subject and returns what they were.
struct RemoveFailedAttempts: Statement {
    let subject: AttemptSubject

    static let sql = """
        DELETE FROM saltern.failed_attempts WHERE subject = $1
        RETURNING failures::bigint, first_failed_at, last_failed_at, blocked_until
        """

    func bind(to parameters: inout Parameters) { parameters.append(subject) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> FailedAttempts {
        try FindFailedAttempts.decode(&row)
    }
}

/// Subjects whose last failure is older than `before`, by the index `failed_attempts_by_age`.
struct FindOldAttempts: Statement {
    let before: Timestamp
    let limit: Int64

    static let isReadOnly = true
    static let sql = """
        SELECT f.subject FROM saltern.failed_attempts f
        WHERE f.first_failed_at <= $1 AND f.last_failed_at <= $1 ORDER BY f.first_failed_at LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(before)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AttemptSubject { try row.next() }
}

/// Removes the failures of subjects that did not fail again. Returns how many there were.
struct RemoveOldAttempts: Statement {
    let subjects: [AttemptSubject]
    let before: Timestamp

    static let sql = """
        WITH gone AS (
            DELETE FROM saltern.failed_attempts f WHERE f.subject = ANY($1) AND f.last_failed_at <= $2
            RETURNING f.subject
        )
        SELECT count(*) FROM gone
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(subjects)
        parameters.append(before)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}
