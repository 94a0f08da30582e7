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

    /// Removes the second factor of a userid, with its recovery codes, for a person who has lost both: from then on the
    /// password is enough. Leaves a row in the audit log, and an event that the person sees.
    /// - Returns: The account.
    /// - Throws: ``AccountRefusal``, ``Refusal``, or a `PostgresError`.
    public func remove(ofUserid userid: String, actor: AuditActor, now: Timestamp) async throws -> AccountID {
        try await AccountReference.userid(userid).act(in: database) { transaction, account in
            guard try await transaction.execute(RemoveSecondFactor(accountID: account)).first != nil else {
                throw Refusal.noSecondFactor
            }
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .totpDisabled, now: now))
            try await transaction.record(
                AppendAudit(actor: actor, action: .secondFactorRemoved, targetAccount: account))
            return account
        }
    }
}
