internal import Cryptography
internal import HTTPCore

/// What may change and delete one share: `slm_` and base64url of 32 random bytes. Its hash alone is stored.
struct ManageToken: Sendable {
    private let secret = SecureRandom.secureBytes(32)

    static let prefix = "slm_"

    /// What is stored of it.
    var hash: TokenHash { TokenHash(SHA256.hash(secret)) }

    /// The token as the client gets it, once.
    var text: String { secret.withUnsafeBytes { Self.prefix + Base64URL.encodeToString($0) } }
}

/// What a request shows of a manage token: the hash, never the secret.
struct PresentedManageToken: Sendable {
    let hash: TokenHash

    /// Reads `Authorization: Bearer slm_…`; nil when the field is absent, comes twice or is anything else.
    init?(_ fields: RequestFields) {
        guard let hash = fields.withValue(named: "authorization", Self.parse) ?? nil else { return nil }
        self.hash = hash
    }

    private static func parse(_ value: UnsafeBufferPointer<UInt8>) -> TokenHash? {
        let scheme = "bearer ".utf8
        let start = scheme.count + ManageToken.prefix.utf8.count
        guard value.count == start + 43, zip(value, scheme).allSatisfy({ $0 | 0x20 == $1 }),
            value[scheme.count..<start].elementsEqual(ManageToken.prefix.utf8),
            let secret = try? Base64URL.decodeSecure(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(value)[start...]))
        else { return nil }
        return TokenHash(SHA256.hash(secret))
    }
}
