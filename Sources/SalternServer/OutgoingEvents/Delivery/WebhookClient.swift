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
