public import Postgres

/// Who does something that the audit log keeps, and the time that other rows are stamped with. The log itself takes the
/// database's time.
public struct AuditSignature: Sendable {
    public let actor: AuditActor
    public let now: Timestamp

    public init(actor: AuditActor, now: Timestamp) {
        self.actor = actor
        self.now = now
    }
}

extension AppendAudit {
    init(_ signature: AuditSignature, _ action: AuditAction, _ target: AccountID? = nil, detail: String? = nil) {
        self.init(actor: signature.actor, action: action, targetAccount: target, detail: detail)
    }
}
