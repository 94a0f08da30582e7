internal import Cryptography

/// A destination's secret: the key of its signatures. `whsec_` and base64 of 32 random bytes, as Standard Webhooks writes it
/// (https://github.com/standard-webhooks/standard-webhooks, "Symmetric signatures").
public struct WebhookSecret: Sendable {
    let bytes: SecureBytes

    static let prefix = "whsec_"
    static let byteCount = 32

    init(_ bytes: SecureBytes) {
        self.bytes = bytes
    }

    /// Draws a secret.
    static func random() -> WebhookSecret { WebhookSecret(SecureRandom.secureBytes(byteCount)) }

    /// The text that the receiver needs, shown once.
    public var text: String { Self.prefix + Base64.encodeToString(bytes) }
}

/// The signature of one attempt: Standard Webhooks v1, HMAC-SHA256 of `id.timestamp.body`.
enum WebhookSignature {
    /// The fields of a request.
    /// - Parameters:
    ///   - id: The same at each attempt.
    ///   - seconds: The time of the attempt, in seconds since 1970.
    ///   - secrets: While a secret rotates, both: the receiver accepts either signature.
    static func fields(
        id: String, at seconds: Int64, body: [UInt8], secrets: [WebhookSecret]
    ) -> [(name: String, value: String)] {
        let message = Array("\(id).\(seconds).".utf8) + body
        let signatures = secrets.map { secret in
            "v1," + Base64.encodeToString(HMACSHA256.authenticationCode(for: message, using: secret.bytes))
        }
        return [
            ("webhook-id", id), ("webhook-timestamp", String(seconds)),
            ("webhook-signature", signatures.joined(separator: " ")),
        ]
    }
}
