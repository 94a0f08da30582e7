internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A new session token: `slt_` and base64url of the account's id and 32 random bytes.
///
/// The token contains the account's id, so that all statements can name the account before the session is checked.
struct SessionToken: Sendable {
    let accountID: AccountID
    /// The account's id and the secret.
    private let bytes: SecureBytes

    static let prefix = "slt_"
    static let secretByteCount = 32

    /// Draws a token for an account.
    init(for accountID: AccountID) {
        self.accountID = accountID
        let secret = SecureRandom.secureBytes(Self.secretByteCount)
        bytes = SecureBytes(count: UUID.byteCount + Self.secretByteCount) { bytes in
            bytes.copyBytes(from: accountID.uuid.bytes)
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[UUID.byteCount...])
            secret.withUnsafeBytes { rest.copyMemory(from: $0) }
        }
    }

    /// The stored hash.
    var hash: TokenHash {
        bytes.withUnsafeBytes { TokenHash(SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[UUID.byteCount...]))) }
    }

    /// Writes the token for the client. No other reply contains it.
    func write(_ name: String, to writer: inout JSONWriter) { writer.member(name, Self.prefix, base64URL: bytes) }
}

/// SHA-256 of a token's random part.
struct TokenHash: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest
}

/// The token of a request: the account and the hash, without the secret.
struct PresentedToken: Sendable {
    let accountID: AccountID
    let hash: TokenHash

    /// Reads `Authorization: Bearer slt_…` (RFC 6750 §2.1).
    ///
    /// - Throws: ``Unauthenticated`` if the field is absent, repeated or malformed.
    init(_ fields: RequestFields) throws(Unauthenticated) {
        let byteCount = UUID.byteCount + SessionToken.secretByteCount
        let parts = BearerSecret.read(fields, prefix: SessionToken.prefix, byteCount: byteCount) { bytes in
            UUID(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<UUID.byteCount])).map {
                (
                    account: AccountID($0),
                    hash: TokenHash(SHA256.hash(UnsafeRawBufferPointer(rebasing: bytes[UUID.byteCount...])))
                )
            }
        }
        guard let parts else { throw Unauthenticated() }
        (accountID, hash) = parts
    }
}

/// The error of a request without a live session. Malformed, unknown, expired and ended tokens return the same.
struct Unauthenticated: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unauthorized, "unauthenticated", detail: "Send the token of a live session: Authorization: Bearer slt_….",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}
