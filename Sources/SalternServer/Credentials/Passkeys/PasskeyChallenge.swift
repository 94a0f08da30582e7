internal import Cryptography
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
