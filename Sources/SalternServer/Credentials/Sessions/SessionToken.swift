internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A new bearer secret: `slt_` and base64url of the account's identifier and 32 random bytes.
///
/// The account is part of the token so that every statement can name it before the session has been looked up.
struct SessionToken: Sendable {
    let accountID: AccountID
    /// The account's identifier and the secret.
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

    /// What is stored of it.
    var hash: TokenHash {
        bytes.withUnsafeBytes { TokenHash(SHA256.hash(UnsafeRawBufferPointer(rebasing: $0[UUID.byteCount...]))) }
    }

    /// Writes the token as the client gets it, once.
    func write(_ name: String, to writer: inout JSONWriter) { writer.member(name, Self.prefix, base64URL: bytes) }
}

/// SHA-256 of a token's random part.
struct TokenHash: StoredDigest, PostgresArrayElement {
    let digest: SHA256Digest
}

/// What a request shows of its token: the account and the hash, never the secret.
struct PresentedToken: Sendable {
    let accountID: AccountID
    let hash: TokenHash

    /// Reads `Authorization: Bearer slt_…` (RFC 6750 §2.1).
    /// - Throws: ``Unauthenticated`` when the field is absent, comes twice or is anything else.
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

/// There is no live session for what the request shows. Malformed, unknown, expired and ended all answer the same.
struct Unauthenticated: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unauthorized, "unauthenticated", detail: "Send the token of a live session: Authorization: Bearer slt_….",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}
