internal import HTTPCore
internal import Postgres
internal import Synchronization

/// Slows guessing down: counts failures in a row for each subject in the database, and refuses to look at a further
/// attempt until the delay is over.
///
/// An endpoint that checks a secret does so in three steps, whatever it finds:
///
///     try await attempts.turn(subject) {
///         let (stored, failures) = try await database.execute(FindIt(…), FindFailedAttempts(subject: subject))
///         let streak = try attempts.admit(failures)      // throws 429 while the subject is blocked
///         guard isRight(stored) else {
///             try await attempts.recordFailure(subject)
///             throw …
///         }
///         await attempts.recordSuccess(subject, after: streak, of: accountID)
///     }
struct Attempts: Sendable {
    let subjects: AttemptSubjects
    let database: PostgresClient
    let turns: AttemptTurns
    let clock: any WallClock

    /// Runs `body` when no other attempt of the subject is under way on this node. The subject's failures are to be read
    /// within it: so each attempt sees the failures of all before it.
    /// - Throws: ``TooManyAttempts`` when too many wait already, or what `body` throws.
    func turn<Result>(_ subject: AttemptSubject, _ body: () async throws -> Result) async throws -> Result {
        try await turns.wait(for: subject, body)
    }

    /// Decides on the rows of ``FindFailedAttempts`` whether an attempt is looked at.
    /// - Returns: The failures so far; nil when there are none.
    /// - Throws: ``TooManyAttempts`` while the subject is blocked.
    func admit(_ rows: [FailedAttempts]) throws(TooManyAttempts) -> FailedAttempts? {
        guard let streak = rows.first else { return nil }
        let now = clock.now
        if streak.blockedUntil > now { throw TooManyAttempts(wait: streak.blockedUntil - now) }
        return streak
    }

    /// The failed log-ins of a userid that no success has ended yet.
    func failures(of userid: Userid) async throws(PostgresError) -> FailedAttempts? {
        try await database.execute(FindFailedAttempts(subject: subjects.userid(userid))).first
    }

    /// Counts a failure.
    func recordFailure(_ subject: AttemptSubject) async throws(PostgresError) {
        _ = try await database.execute(RecordFailedAttempt(subject: subject, now: clock.now))
    }

    /// Forgets the failures before a success and notes them in the account's security log. Without any it does nothing.
    ///
    /// The attempt has succeeded whether this does or not: what stays counted now is forgotten the next time.
    func recordSuccess(_ subject: AttemptSubject, after streak: FailedAttempts?, of accountID: AccountID) async {
        if streak == nil { return }
        try? await database.withTransaction { transaction in
            guard let streak = try await transaction.execute(RemoveFailedAttempts(subject: subject)).first else {
                return
            }
            _ = try await transaction.execute(
                RecordSecurityEvent(
                    accountID: accountID, kind: .failedLogins, now: clock.now, count: streak.count,
                    since: streak.since))
        }
    }
}

/// Too many attempts failed in a row: this one was not looked at, right or wrong.
struct TooManyAttempts: ProblemConvertible {
    let wait: Duration

    var problem: Problem {
        Problem(
            .tooManyRequests, "too_many_attempts",
            detail: "Too many attempts failed. This one was not looked at; send it again after Retry-After.",
            responseFields: ["Retry-After": RetryAfter.seconds(wait)])
    }
}
