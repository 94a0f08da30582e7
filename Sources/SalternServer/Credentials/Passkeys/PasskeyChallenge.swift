internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Provides the bytes that authenticators sign. The server stores no challenge, because each contains an authentication
/// code of its purpose.
struct PasskeyChallenge: Sendable {
    /// The ceremony of a challenge.
    enum Purpose: Sendable {
        /// Registration by the session of an account.
        case registration(AccountID, TokenHash)
        /// The second factor of a log-in with the password key.
        case secondFactor(AccountID)
        /// A log-in without a userid.
        case logIn
        /// A request of a session, with SHA-256 of its body.
        case request(AccountID, TokenHash, ProvenRequest, SHA256Digest)

        fileprivate var bytes: [UInt8] {
            switch self {
            case .registration(let account, let token): [1] + account.uuid.bytes + token.digest.bytes
            case .secondFactor(let account): [2] + account.uuid.bytes
            case .logIn: [3]
            case .request(let account, let token, let request, let body):
                [4] + account.uuid.bytes + token.digest.bytes + body.bytes + request.rawValue.utf8
            }
        }
    }

    /// The time for which a challenge is accepted.
    static let lifetime = Duration.seconds(300)
    fileprivate static let randomCount = 32
    fileprivate static let timeCount = 8

    /// Contains random bytes, the time in seconds, and HMAC-SHA256 of both and the purpose.
    let bytes: [UInt8]
    let expiresAt: Timestamp

    /// The stored form of a used challenge: its SHA-256.
    var hash: PasskeyChallengeHash { PasskeyChallengeHash(SHA256.hash(bytes)) }
}

/// The stored form of a used challenge.
struct PasskeyChallengeHash: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest
}

/// Creates and verifies challenges, on any node that has the master key.
struct PasskeyChallenges: Sendable {
    /// One key for each master key, the active one first.
    private let keys: [HMACSHA256.Key]

    init(_ masterKey: MasterKey) {
        keys = masterKey.subkeys("passkey-challenge")
    }

    func make(for purpose: PasskeyChallenge.Purpose, now: Timestamp) -> PasskeyChallenge {
        let time = Swift.withUnsafeBytes(of: now.unixSeconds.bigEndian) { [UInt8]($0) }
        let head = SecureRandom.bytes(PasskeyChallenge.randomCount) + time
        return PasskeyChallenge(
            bytes: head + keys[0].authenticationCode(for: purpose.bytes + head).bytes,
            expiresAt: Timestamp(unixSeconds: now.unixSeconds) + PasskeyChallenge.lifetime)
    }

    /// Returns the challenge with these bytes. Returns nil if it has expired, or this server did not create it for this
    /// purpose.
    func challenge(_ bytes: [UInt8], for purpose: PasskeyChallenge.Purpose, now: Timestamp) -> PasskeyChallenge? {
        let headCount = PasskeyChallenge.randomCount + PasskeyChallenge.timeCount
        guard bytes.count == headCount + SHA256Digest.byteCount, let code = SHA256Digest(bytes[headCount...]) else {
            return nil
        }
        let head = [UInt8](bytes[..<headCount])
        guard keys.contains(where: { $0.authenticationCode(for: purpose.bytes + head) == code }) else { return nil }
        let seconds = head[PasskeyChallenge.randomCount...].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        let madeAt = Timestamp(unixSeconds: Int64(bitPattern: seconds))
        // Nodes use the database's clock, and may differ a little.
        guard madeAt <= now + AttemptPolicy.clockSlack, now < madeAt + PasskeyChallenge.lifetime else { return nil }
        return PasskeyChallenge(bytes: bytes, expiresAt: madeAt + PasskeyChallenge.lifetime)
    }
}

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

private enum UsedChallenge {
    /// The expiry of a used challenge `c`. As the column alone, the planner could choose the index by expiry, and read
    /// the challenges of all accounts.
    static let expiry: SQLFragment = "coalesce(c.expires_at, 'infinity')"
}

/// Counts an account's used challenges that have not expired.
struct CountUsedChallenges: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let now: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(*) FROM saltern.used_challenges c
        WHERE c.account_id = \(\.accountID) AND \(UsedChallenge.expiry) > \(\.now)
        """
}

/// Removes the expired used challenges of an account before the next purge.
struct ForgetExpiredChallenges: Statement {
    let accountID: AccountID
    let now: Timestamp

    static let sql: SQL<Self> = """
        DELETE FROM saltern.used_challenges c
        WHERE c.account_id = \(\.accountID) AND \(UsedChallenge.expiry) <= \(\.now)
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
                AND \(UsedChallenge.expiry) <= \(\.now)
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
