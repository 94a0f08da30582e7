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
