/// An admin's reason for an act, as free text in the audit log.
public struct AuditReason: Sendable, Hashable {
    /// Maximum number of characters. Together with a command's own detail, a row has room for 1,000.
    public static let limit = 500

    /// 1 to ``limit`` characters without control characters.
    public let text: String

    /// Accepts a text. Nil if it is empty, too long, or has characters that terminals interpret.
    public init?(_ text: String) {
        guard (1...Self.limit).contains(text.unicodeScalars.count),
            !text.unicodeScalars.contains(where: AuditActor.isRefused)
        else { return nil }
        self.text = text
    }
}
