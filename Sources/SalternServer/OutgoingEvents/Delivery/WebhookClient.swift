internal import Cryptography

/// Posts one webhook and reports the receiver's answer. The server's executable has the implementation.
public protocol WebhookClient: Sendable {
    /// Posts `request` once, without redirects, within ``WebhookRequest/timeLimit``.
    func post(_ request: WebhookRequest) async -> WebhookOutcome
}

/// One attempt to deliver an event.
public struct WebhookRequest: Sendable {
    /// An https URL.
    public let url: String
    /// Names and values without control characters.
    public let fields: [(name: String, value: String)]
    public let body: [UInt8]

    /// The longest time of an attempt: connection, TLS and answer together.
    public static let timeLimit = Duration.seconds(10)
    /// The longest body of an answer, in bytes. Its content has no meaning.
    public static let answerLimit = 65_536

    public init(url: String, fields: [(name: String, value: String)], body: [UInt8]) {
        self.url = url
        self.fields = fields
        self.body = body
    }
}

/// The end of an attempt.
public enum WebhookOutcome: Sendable, Equatable {
    /// The receiver answered with this status.
    case status(Int)
    case failed(WebhookFailure)
}

/// The reason why an attempt has no usable answer. The raw value labels metrics.
public enum WebhookFailure: String, Sendable, CaseIterable {
    /// No connection, or its end before an answer.
    case unreachable
    /// The receiver's certificate is not valid for its name.
    case untrusted
    case timedOut = "timed_out"
    /// The answer is not HTTP, or is longer than ``WebhookRequest/answerLimit``.
    case unacceptable
    /// This server ends, or is out of memory.
    case cancelled
}

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
