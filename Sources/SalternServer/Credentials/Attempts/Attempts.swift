internal import HTTPCore
internal import Postgres

/// Slows guessing down: counts failures in a row in the database, and refuses to look at a further secret until the delay
/// is over. Whoever checks a secret does so in a ``ThrottledCheck``.
struct Attempts: Sendable {
    let subjects: AttemptSubjects
    let database: PostgresClient
    let counterQueue: CounterQueue
    let checks: ActiveSecretChecks
    let devices: DeviceTokens
    let previousKeys: PreviousKeys
    let clock: any WallClock

    /// An attempt of somebody who has no session.
    func attempt(_ userid: Userid, _ claim: DeviceClaim, from client: ClientAddress) -> ThrottledCheck {
        ThrottledCheck(
            attempts: self, userid: userid, device: claim.token.flatMap { devices.device($0) }, client: client)
    }

    /// The failures of a userid that no success has ended yet, by kind.
    func failures(of userid: Userid) async throws(PostgresError) -> [FailureTally] {
        let counters = try await database.execute(FindAllFailedAttempts(subject: subjects.userid(userid)))
        return FailureTally.sum(counters.flatMap(\.tallies))
    }

    /// Forgets the failures before a success and notes them in the account's security log.
    ///
    /// The attempt has succeeded whether this does or not: what stays counted now is forgotten the next time.
    func forget(_ counter: AttemptCounter, of accountID: AccountID) async {
        try? await database.withTransaction(key: .account(accountID)) { transaction in
            // The account first, as everybody takes locks: whoever waits for it does not hold the counter meanwhile.
            let (_, removed) = try await transaction.execute(
                KeepAccount(accountID: accountID), RemoveFailedAttempts(counter: counter))
            try await transaction.note(removed.flatMap(\.tallies), of: accountID, now: clock.now)
        }
    }
}

extension Transaction {
    /// Writes an event for each kind of failures. The account's row is locked.
    func note(_ tallies: [FailureTally], of accountID: AccountID, now: Timestamp) async throws(PostgresError) {
        for tally in FailureTally.sum(tallies) {
            try await note(
                RecordSecurityEvent(
                    accountID: accountID, kind: tally.kind.event, now: now, count: tally.count, since: tally.since))
        }
    }
}

/// Too many attempts failed in a row: this one was not looked at, right or wrong.
struct TooManyAttempts: ProblemConvertible {
    let wait: Duration

    var problem: Problem {
        Problem(
            .tooManyRequests, "too_many_attempts",
            detail: "Too many attempts failed. This attempt was not checked. Send it again after Retry-After.",
            responseFields: ["Retry-After": RetryAfter.seconds(wait)])
    }
}
