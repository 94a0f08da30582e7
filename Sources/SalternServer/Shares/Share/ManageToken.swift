internal import Cryptography
internal import HTTPCore

/// The token that changes or deletes one share: `slm_` and base64url of 32 random bytes. Only its hash is stored.
struct ManageToken: Sendable {
    private let secret = SecureRandom.secureBytes(secretByteCount)

    static let prefix = "slm_"
    static let secretByteCount = 32

    /// The stored hash.
    var hash: TokenHash { TokenHash(SHA256.hash(secret)) }

    /// Writes the token for the client. No other reply contains it.
    func write(_ name: String, to writer: inout JSONWriter) { writer.member(name, Self.prefix, base64URL: secret) }
}

/// The manage token of a request: the hash, without the secret.
struct PresentedManageToken: Sendable {
    let hash: TokenHash

    /// Reads `Authorization: Bearer slm_…`. Nil if the field is absent, repeated or malformed.
    init?(_ fields: RequestFields) {
        let hash = BearerSecret.read(
            fields, prefix: ManageToken.prefix, byteCount: ManageToken.secretByteCount
        ) { secret in
            TokenHash(SHA256.hash(secret))
        }
        guard let hash else { return nil }
        self.hash = hash
    }
}
