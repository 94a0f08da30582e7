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

    /// The removed second factors.
    public struct Removed: Sendable {
        public let account: AccountID
        /// True if there were one-time passwords, confirmed or not.
        public let hadCodes: Bool
        /// The names of the passkeys.
        public let passkeys: [String]
    }

    /// Removes an account's second factors and its recovery codes, for a person who has lost them. Log-ins then need
    /// only the password. Ends the sessions that the passkeys have opened. Writes a row in the audit log and events for
    /// the account's owner.
    /// - Throws: ``AccountRefusal``, ``Refusal``, or a `PostgresError`.
    public func remove(of reference: AccountReference, by signature: AuditSignature) async throws -> Removed {
        try await reference.act(in: database) { transaction, account in
            let (codes, passkeys) = try await transaction.execute(
                RemoveSecondFactor(accountID: account), DeletePasskeys(accountID: account))
            guard !codes.isEmpty || !passkeys.isEmpty else { throw Refusal.noSecondFactor }
            if !codes.isEmpty {
                try await transaction.note(
                    RecordSecurityEvent(accountID: account, kind: .totpDisabled, now: signature.now))
            }
            if !passkeys.isEmpty {
                try await transaction.note(
                    RecordSecurityEvent(
                        accountID: account, kind: .passkeyRemoved, now: signature.now, count: Int64(passkeys.count)))
            }
            for passkey in passkeys {
                _ = try await transaction.endSessions(
                    RemoveAllSessions(
                        accountID: account, exception: nil, now: signature.now, passkey: passkey.id.hash))
            }
            try await transaction.record(AppendAudit(signature, .secondFactorRemoved, account))
            return Removed(account: account, hadCodes: !codes.isEmpty, passkeys: passkeys.map(\.name))
        }
    }
}

/// Removes all passkeys of an account.
struct DeletePasskeys: Statement {
    let accountID: AccountID

    struct Row: Sendable {
        let id: PasskeyID
        let name: String
    }

    static let sql: SQL<Self> =
        "DELETE FROM saltern.passkeys k WHERE k.account_id = \(\.accountID) RETURNING k.credential_id, k.name"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
