internal import Cryptography

/// Signs the webhooks of a destination: `whsec_` and base64 of 32 random bytes, the form of Standard Webhooks
/// (https://github.com/standard-webhooks/standard-webhooks, "Symmetric signatures").
public struct WebhookSecret: Sendable {
    let bytes: SecureBytes

    static let prefix = "whsec_"
    static let byteCount = 32

    init(_ bytes: SecureBytes) {
        self.bytes = bytes
    }

    /// Generates a random secret.
    static func random() -> WebhookSecret { WebhookSecret(SecureRandom.secureBytes(byteCount)) }

    /// The text for the receiver, shown once.
    public var text: String { Self.prefix + Base64.encodeToString(bytes) }
}

/// The signature of one attempt: Standard Webhooks v1, HMAC-SHA256 of `id.timestamp.body`.
enum WebhookSignature {
    /// Returns the fields of a request.
    /// - Parameters:
    ///   - id: The same at each attempt.
    ///   - seconds: The time of the attempt, in seconds since 1970.
    ///   - secrets: Both secrets during a rotation. The receiver accepts either signature.
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
