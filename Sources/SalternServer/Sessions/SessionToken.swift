internal import Cryptography
internal import HTTPCore
internal import Postgres

/// A new bearer secret: `slt_` and base64url of the account's identifier and 32 random bytes.
///
/// The account is part of the token so that every statement can name it before the session has been looked up.
struct SessionToken: Sendable {
    let accountID: AccountID
    private let secret: SecureBytes

    static let prefix = "slt_"
    static let secretByteCount = 32

    /// Draws a token for an account.
    init(for accountID: AccountID) {
        self.accountID = accountID
        secret = SecureRandom.secureBytes(Self.secretByteCount)
    }

    /// What is stored of it.
    var hash: TokenHash { TokenHash(SHA256.hash(secret)) }

    /// The token as the client gets it, once.
    var text: String {
        Self.prefix + secret.withUnsafeBytes { Base64URL.encodeToString(accountID.uuid.bytes + [UInt8]($0)) }
    }
}

/// SHA-256 of a token's random part.
struct TokenHash: Sendable, Hashable {
    let digest: SHA256Digest

    init(_ digest: SHA256Digest) {
        self.digest = digest
    }
}

extension TokenHash: PostgresValue {
    static var postgresType: PostgresType { .bytea }

    func encode(to writer: inout ByteWriter) { digest.withUnsafeBytes { writer.write($0) } }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> TokenHash? {
        bytes.flatMap { SHA256Digest($0) }.map(TokenHash.init)
    }
}

/// What a request shows of its token: the account and the hash, never the secret.
struct PresentedToken: Sendable {
    let accountID: AccountID
    let hash: TokenHash

    /// Reads `Authorization: Bearer slt_…` (RFC 6750 §2.1).
    /// - Throws: ``Unauthenticated`` when the field is absent, comes twice or is anything else.
    init(_ fields: RequestFields) throws(Unauthenticated) {
        guard let token = fields.withValue(named: "authorization", Self.parse) ?? nil else { throw Unauthenticated() }
        self = token
    }

    private init(accountID: AccountID, hash: TokenHash) {
        self.accountID = accountID
        self.hash = hash
    }

    private static func parse(_ value: UnsafeBufferPointer<UInt8>) -> PresentedToken? {
        let scheme = "bearer ".utf8
        let start = scheme.count + SessionToken.prefix.utf8.count
        guard value.count == start + 64, zip(value, scheme).allSatisfy({ $0 | 0x20 == $1 }),
            value[scheme.count..<start].elementsEqual(SessionToken.prefix.utf8),
            let bytes = try? Base64URL.decodeSecure(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(value)[start...]))
        else { return nil }
        return bytes.withUnsafeBytes { bytes in
            guard let uuid = UUID(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<16])) else { return nil }
            let secret = UnsafeRawBufferPointer(rebasing: bytes[16...])
            return PresentedToken(accountID: AccountID(uuid), hash: TokenHash(SHA256.hash(secret)))
        }
    }
}

/// There is no live session for what the request shows. Malformed, unknown, expired and ended all answer the same.
struct Unauthenticated: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unauthorized, "unauthenticated", detail: "A live session's token is needed: Authorization: Bearer slt_….",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}
