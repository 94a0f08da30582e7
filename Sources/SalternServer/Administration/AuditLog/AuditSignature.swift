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
