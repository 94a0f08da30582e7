/// Why an admin does something, in words of their own, which the audit log keeps.
public struct AuditReason: Sendable, Hashable {
    /// The most characters. With what a command says itself, a row has room for 1,000.
    public static let limit = 500

    /// 1 to ``limit`` characters without control characters.
    public let text: String

    /// Takes a text; nil when it is empty, too long, or has characters that a terminal obeys.
    public init?(_ text: String) {
        guard (1...Self.limit).contains(text.unicodeScalars.count),
            !text.unicodeScalars.contains(where: AuditActor.isRefused)
        else { return nil }
        self.text = text
    }
}
