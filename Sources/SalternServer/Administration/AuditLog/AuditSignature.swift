public import Postgres

/// The actor, time and reason of an act. Other rows get this time; the audit log uses the database's time.
public struct AuditSignature: Sendable {
    public let actor: AuditActor
    public let now: Timestamp
    public let reason: AuditReason?

    public init(actor: AuditActor, now: Timestamp, reason: AuditReason? = nil) {
        self.actor = actor
        self.now = now
        self.reason = reason
    }
}

extension AppendAudit {
    init(_ signature: AuditSignature, _ action: AuditAction, _ target: AccountID? = nil, detail: String? = nil) {
        let words = [detail, signature.reason.map { "reason: \($0.text)" }].compactMap(\.self)
        self.init(
            actor: signature.actor, action: action, targetAccount: target,
            detail: words.isEmpty ? nil : words.joined(separator: "; "))
    }
}

/// The actor of a row in the audit log: an admin's name, or ``account`` for the account's owner.
public struct AuditActor: Sendable, Hashable {
    /// 1 to 128 characters without control characters.
    public let name: String

    /// The owner of the account that the act concerns.
    public static let account = AuditActor(unchecked: "account")

    /// An unnamed user of the operating system.
    public static func user(_ number: UInt32) -> AuditActor { AuditActor(unchecked: "uid \(number)") }

    /// Accepts a name. Nil if it is empty, too long, or has characters that terminals interpret.
    public init?(_ name: String) {
        guard (1...128).contains(name.unicodeScalars.count), !name.unicodeScalars.contains(where: Self.isRefused) else {
            return nil
        }
        self.name = name
    }

    private init(unchecked name: String) {
        self.name = name
    }

    static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
        default: false
        }
    }
}

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
