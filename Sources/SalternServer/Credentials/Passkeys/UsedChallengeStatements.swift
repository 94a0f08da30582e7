internal import HTTPCore
internal import Postgres

/// Uses up a challenge. Returns no row if it was already used. Of two nodes, the later one waits until the earlier one
/// ends.
struct UseChallenge: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let challenge: PasskeyChallenge

    static let sql: SQL<Self> = """
        INSERT INTO saltern.used_challenges (account_id, challenge_hash, expires_at)
        VALUES (\(\.accountID), \(\.challenge.hash), \(\.challenge.expiresAt))
        ON CONFLICT (account_id, challenge_hash) DO NOTHING
        RETURNING account_id
        """
}

/// Counts an account's used challenges that have not expired.
struct CountUsedChallenges: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let now: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*) FROM saltern.used_challenges c
        WHERE c.account_id = \(\.accountID) AND c.expires_at > \(\.now)
        """
}

/// Removes the expired used challenges of an account before the next purge.
struct ForgetExpiredChallenges: Statement {
    let accountID: AccountID
    let now: Timestamp

    static let sql: SQL<Self> = """
        DELETE FROM saltern.used_challenges c WHERE c.account_id = \(\.accountID) AND c.expires_at <= \(\.now)
        """
}

extension Transaction {
    /// Uses up a challenge, in a transaction that holds the account's row.
    ///
    /// - Returns: False if the challenge was already used.
    /// - Throws: ``TooManyPasskeyUses``, or a `PostgresError`.
    func spend(_ challenge: PasskeyChallenge, of accountID: AccountID, now: Timestamp) async throws -> Bool {
        let (_, present, used) = try await execute(
            ForgetExpiredChallenges(accountID: accountID, now: now),
            CountUsedChallenges(accountID: accountID, now: now),
            UseChallenge(accountID: accountID, challenge: challenge))
        guard !used.isEmpty else { return false }
        guard (present.first ?? 0) < TooManyPasskeyUses.limit else { throw TooManyPasskeyUses() }
        return true
    }
}

/// The error of a use of a passkey that a transaction has rejected after it wrote rows.
protocol RejectedPasskeyUse: ProblemConvertible {}

extension WrongPasskey: RejectedPasskeyUse {}

/// The error of an account with ``limit`` used challenges. Only uses of its own passkeys count, so strangers cannot
/// cause it.
struct TooManyPasskeyUses: RejectedPasskeyUse {
    /// The most uses of an account's passkeys within ``PasskeyChallenge/lifetime``.
    static let limit: Int64 = 200

    var problem: Problem {
        Problem(
            .tooManyRequests, "too_many_passkey_uses",
            detail:
                "The account's passkeys were used \(Self.limit) times within five minutes. Try again after Retry-After.",
            limit: Int(Self.limit), responseFields: ["Retry-After": "60"])
    }
}

/// Finds expired used challenges, the oldest first.
struct FindExpiredChallenges: Statement {
    typealias Row = DueRow<PasskeyChallengeHash>

    let now: Timestamp
    /// Accounts to omit.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT c.account_id, c.challenge_hash FROM saltern.used_challenges c
        WHERE c.expires_at <= \(\.now) AND c.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY c.expires_at LIMIT \(\.limit)
        """
}

/// Removes expired used challenges of an account, and returns their number.
struct RemoveExpiredChallenges: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let now: Timestamp
    let hashes: [PasskeyChallengeHash]

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.used_challenges c
            WHERE c.account_id = \(\.accountID) AND c.challenge_hash = ANY(\(\.hashes)::bytea[])
                AND c.expires_at <= \(\.now)
            RETURNING c.challenge_hash
        )
        SELECT count(*) FROM gone g
        """
}

/// Finds the expiry times of used challenges by the index `used_challenges_by_expiry`.
struct FindDueChallenges: OldestRows {
    static let kind = "challenges"
    static let time: SQLFragment = "c.expires_at"
    static let table: SQLFragment = "saltern.used_challenges c"

    let moment: Timestamp
    let limit: Int64
}
