internal import Postgres

/// The failures of a counter.
struct FailedAttempts: DecodableRow {
    let place: AttemptPlace
    /// Failures of each kind since the last success.
    let tallies: [FailureTally]
    /// The number of consecutive failures without a day's pause. It decides the delay.
    let streak: Int32
    let last: Timestamp
    /// Attempts before this time are rejected unchecked.
    let blockedUntil: Timestamp

    /// Returns true if the next failure causes a delay.
    func isCritical(at now: Timestamp) -> Bool {
        streak >= AttemptPolicy.freeFailures && last > now - AttemptPolicy.memory
    }

    /// Columns for a statement about `saltern.failed_attempts f`.
    static let columns: SQLFragment =
        "f.counter, f.counts, f.since, f.latest, f.streak, f.last_failed_at, f.blocked_until"

    init(row: inout RowReader) throws(PostgresError) {
        place = try row.next()
        let counts: [Int32] = try row.next()
        let since: [Timestamp] = try row.next()
        let latest: [Timestamp] = try row.next()
        tallies = FailureKind.allCases.compactMap { kind in
            let index = kind.rawValue
            guard index < min(counts.count, since.count, latest.count), counts[index] > 0 else { return nil }
            return FailureTally(kind: kind, count: Int64(counts[index]), since: since[index], latest: latest[index])
        }
        streak = try row.next()
        last = try row.next()
        blockedUntil = try row.next()
    }
}

/// Finds two counters of a userid, with a row for each that has failures. Both are read even if only one is used.
///
/// Costs 26 thousand instructions, sent with ``FindLogin``. One statement has both keys, because a second statement
/// would cost as much again.
struct FindFailedAttempts: Statement {
    typealias Row = FailedAttempts

    let subject: AttemptSubject
    let places: [AttemptPlace]

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(FailedAttempts.columns) FROM saltern.failed_attempts f
            WHERE f.subject = \(\.subject) AND f.counter = ANY(\(\.places))
        """
}

/// Finds all counters of a userid.
struct FindAllFailedAttempts: Statement {
    typealias Row = FailedAttempts

    let subject: AttemptSubject

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT \(FailedAttempts.columns) FROM saltern.failed_attempts f WHERE f.subject = \(\.subject)"
}

/// SQL for the change of streak and delay by a failure, in the row `f` of a counter. All times are parameters:
/// PostgreSQL's arithmetic with times is not immutable, and distributed PostgreSQL requires immutable expressions in
/// `ON CONFLICT`.
private struct Delay: Sendable {
    let now: Timestamp

    /// Failures after this time count.
    private var memory: Timestamp { now - AttemptPolicy.memory }
    private var blocks: [Timestamp] { AttemptPolicy.blocks(failingAt: now) }

    static let streak: SQL<Self> = """
        CASE WHEN f.last_failed_at <= \(\.memory) THEN 1 ELSE LEAST(f.streak, 1000000000) + 1 END
        """
    static let block: SQL<Self> = """
        (\(\.blocks)::timestamptz[])[CASE WHEN f.last_failed_at <= \(\.memory) THEN 1 \
        ELSE LEAST(f.streak + 1, cardinality(\(\.blocks)::timestamptz[])) END]
        """
    /// The same without an array subscript that depends on the row. A distributed database evaluates constants before
    /// it sends the statement to a shard, and its server crashes on such a subscript.
    static let blockFound: SQL<Self> = """
        (SELECT b.until FROM unnest(\(\.blocks)::timestamptz[]) WITH ORDINALITY AS b (until, place)
            WHERE b.place = CASE WHEN f.last_failed_at <= \(\.memory) THEN 1
                ELSE LEAST(f.streak + 1, \(\.blockCount)) END)
        """
    private var blockCount: Int64 { Int64(blocks.count) }
    static let firstBlock: SQL<Self> = "(\(\.blocks)::timestamptz[])[1]"
}

/// Starts the delay of a failure before the secret is checked. Returns its end, and no row if the counter is blocked or
/// gone because another node was faster.
struct ReserveAttempt: Statement {
    typealias Row = Timestamp

    let counter: AttemptCounter
    let now: Timestamp

    private var delay: Delay { Delay(now: now) }
    private var latestEnd: Timestamp { AttemptPolicy.latestEnd(at: now) }

    static let sql: SQL<Self> = """
        UPDATE saltern.failed_attempts f
        SET streak = \(Delay.streak, of: \.delay), blocked_until = \(Delay.blockFound, of: \.delay),
            last_failed_at = GREATEST(f.last_failed_at, \(\.now))
        WHERE f.subject = \(\.counter.subject) AND f.counter = \(\.counter.place) AND (f.blocked_until <= \(\.now)
            OR f.blocked_until > \(\.latestEnd))
        RETURNING f.blocked_until
        """
}

/// Reverts ``ReserveAttempt`` if the check had no result, unless a later attempt has changed the counter.
struct ReleaseAttempt: Statement {
    let counter: AttemptCounter
    /// The counter before the reservation.
    let failures: FailedAttempts
    /// The end of the delay that was started.
    let blockedUntil: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.failed_attempts f SET streak = \(\.failures.streak), last_failed_at = \(\.failures.last),
            blocked_until = \(\.failures.blockedUntil)
        WHERE f.subject = \(\.counter.subject) AND f.counter = \(\.counter.place)
            AND f.blocked_until = \(\.blockedUntil)
        """
}

/// Counts a failure.
struct RecordFailedAttempt: Statement {
    let counter: AttemptCounter
    let kind: FailureKind
    let now: Timestamp
    /// True if ``ReserveAttempt`` has started the delay.
    let isReserved: Bool

    private var delay: Delay { Delay(now: now) }
    private var counts: [Int32] { FailureKind.allCases.map { $0 == kind ? 1 : 0 } }
    private var since: [Timestamp] { FailureKind.allCases.map { $0 == kind ? now : .distantFuture } }
    private var latest: [Timestamp] { FailureKind.allCases.map { $0 == kind ? now : .distantPast } }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.failed_attempts AS f
            (subject, counter, counts, since, latest, streak, first_failed_at, last_failed_at, blocked_until)
        VALUES (\(\.counter.subject), \(\.counter.place), \(\.counts), \(\.since), \(\.latest), 1, \(\.now), \(\.now),
            \(Delay.firstBlock, of: \.delay))
        ON CONFLICT (subject, counter) DO UPDATE SET
            counts = ARRAY[\(each { "LEAST(f.counts[\($0)], 1000000000) + excluded.counts[\($0)]" })],
            since = ARRAY[\(each { "LEAST(f.since[\($0)], excluded.since[\($0)])" })],
            latest = ARRAY[\(each { "GREATEST(f.latest[\($0)], excluded.latest[\($0)])" })],
            streak = CASE WHEN \(\.isReserved) THEN f.streak ELSE \(Delay.streak, of: \.delay) END,
            last_failed_at = GREATEST(f.last_failed_at, excluded.last_failed_at),
            blocked_until = CASE WHEN \(\.isReserved) THEN f.blocked_until ELSE \(Delay.block, of: \.delay) END
        """

    /// Joins one expression for each kind.
    private static func each(_ expression: (Int) -> SQLFragment) -> SQLFragment {
        (1...FailureKind.allCases.count).map(expression).joined(separator: ", ")
    }
}

/// Fails if a failure could not be counted, and changes nothing. With a right secret it replaces
/// ``RecordFailedAttempt``, so blocked writes of the counter reveal nothing about secrets.
///
/// Costs 20 thousand instructions if the counter has no row: one index scan.
struct HoldFailedAttempts: Statement {
    let counter: AttemptCounter

    var bytesInGroup: Int? { 64 }

    static let sql: SQL<Self> = """
        UPDATE saltern.failed_attempts f SET streak = f.streak
            WHERE f.subject = \(\.counter.subject) AND f.counter = \(\.counter.place)
        """
}

/// Removes the failures of a counter and returns them.
struct RemoveFailedAttempts: Statement {
    typealias Row = FailedAttempts

    let counter: AttemptCounter

    static let sql: SQL<Self> = """
        DELETE FROM saltern.failed_attempts f WHERE f.subject = \(\.counter.subject) AND f.counter = \(\.counter.place)
        RETURNING \(FailedAttempts.columns)
        """
}

/// Removes the failures of a userid that were counted for known devices, and returns them.
struct RemoveFailuresOfDevices: Statement {
    typealias Row = FailedAttempts

    let subject: AttemptSubject

    private var stranger: AttemptPlace { .stranger }

    static let sql: SQL<Self> = """
        DELETE FROM saltern.failed_attempts f WHERE f.subject = \(\.subject) AND f.counter <> \(\.stranger)
        RETURNING \(FailedAttempts.columns)
        """
}

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

/// The statements of attempts to log in.
extension StatementList {
    static var attempts: [any Statement.Type] {
        [
            FindFailedAttempts.self, FindAllFailedAttempts.self, ReserveAttempt.self, ReleaseAttempt.self,
            RecordFailedAttempt.self, HoldFailedAttempts.self, RemoveFailedAttempts.self, RemoveFailuresOfDevices.self,
            FindOldAttempts.self, RemoveOldAttempts.self,
        ]
    }
}
