internal import Postgres

extension Transaction {
    /// Records what the transaction has done. Its last statement: from here to the commit everybody who records waits.
    ///
    /// - Throws: ``AuditLogUnusable`` when there is nowhere to record it, and so the transaction must not commit.
    func record(_ act: AppendAudit) async throws {
        guard try await execute(act).first != nil else { throw AuditLogUnusable() }
    }
}

/// The head of the audit log's chain is missing: somebody has removed it.
struct AuditLogUnusable: Error, CustomStringConvertible {
    var description: String { "the head of the audit log is missing; see saltern audit verify" }
}
