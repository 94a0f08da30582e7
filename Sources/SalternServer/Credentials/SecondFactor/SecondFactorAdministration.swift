public import Postgres

/// Removes second factors for an operator.
public struct SecondFactorAdministration {
    private let database: PostgresClient

    /// - Parameter database: Has the owner's rights.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// Reasons to reject the removal for an existing account.
    public enum Refusal: Error, CustomStringConvertible {
        case noSecondFactor

        public var description: String {
            switch self {
            case .noSecondFactor: "the account has no second factor"
            }
        }
    }

    /// Removes an account's second factor and its recovery codes, for a person who has lost both. Log-ins then need
    /// only the password. Writes a row in the audit log and an event for the account's owner.
    ///
    /// - Returns: The account.
    /// - Throws: ``AccountRefusal``, ``Refusal``, or a `PostgresError`.
    public func remove(of reference: AccountReference, by signature: AuditSignature) async throws -> AccountID {
        try await reference.act(in: database) { transaction, account in
            guard try await transaction.execute(RemoveSecondFactor(accountID: account)).first != nil else {
                throw Refusal.noSecondFactor
            }
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .totpDisabled, now: signature.now))
            try await transaction.record(AppendAudit(signature, .secondFactorRemoved, account))
            return account
        }
    }
}
