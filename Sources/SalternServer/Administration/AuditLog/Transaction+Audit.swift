internal import Postgres

extension Transaction {
    /// Records the act of the transaction. It must be the last statement, because all other records wait until the
    /// commit.
    ///
    /// - Throws: ``AuditLogUnusable`` if the log cannot record it; the transaction must then not commit.
    func record(_ act: AppendAudit) async throws {
        guard try await execute(act).first != nil else { throw AuditLogUnusable() }
    }
}

/// The error of an audit log whose head was removed.
struct AuditLogUnusable: Error, CustomStringConvertible {
    var description: String { "the head of the audit log is missing; see saltern audit verify" }
}
