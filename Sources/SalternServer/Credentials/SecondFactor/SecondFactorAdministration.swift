public import Postgres

/// What an operator does with second factors.
public struct SecondFactorAdministration {
    private let database: PostgresClient

    /// - Parameter database: With the rights of the owner.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// Why nothing was removed, although there is such an account.
    public enum Refusal: Error, CustomStringConvertible {
        case noSecondFactor

        public var description: String {
            switch self {
            case .noSecondFactor: "the account has no second factor"
            }
        }
    }

    /// Removes the second factor of an account, with its recovery codes, for a person who has lost both: from then on the
    /// password is enough. Leaves a row in the audit log, and an event that the person sees.
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
