internal import Cryptography
internal import HTTPCore

/// What may change and delete one share: `slm_` and base64url of 32 random bytes. Its hash alone is stored.
struct ManageToken: Sendable {
    private let secret = SecureRandom.secureBytes(secretByteCount)

    static let prefix = "slm_"
    static let secretByteCount = 32

    /// What is stored of it.
    var hash: TokenHash { TokenHash(SHA256.hash(secret)) }

    /// Writes the token as the client gets it, once.
    func write(_ name: String, to writer: inout JSONWriter) { writer.member(name, Self.prefix, base64URL: secret) }
}

/// What a request shows of a manage token: the hash, never the secret.
struct PresentedManageToken: Sendable {
    let hash: TokenHash

    /// Reads `Authorization: Bearer slm_…`; nil when the field is absent, comes twice or is anything else.
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
