internal import HTTPCore
internal import Postgres

/// What becomes of the recovery when the data keys change: otherwise the printed code would go on opening the old ones,
/// and nothing else.
enum RecoveryChange: Sendable {
    /// The request says nothing.
    case unspecified
    /// What the code opens from now on.
    case keyring(Keyring)
    /// There is to be none any more.
    case removed

    /// Takes `recoveryKeyring` and `removeRecovery`.
    /// - Throws: 422 `conflicting_members`, or what is wrong with one of them.
    init(_ members: inout JSONMembers) throws {
        let keyring = try members.optional("recoveryKeyring", Keyring.init(json:))
        let isRemoved = try members.optional("removeRecovery") { try $0.bool() } ?? false
        switch (keyring, isRemoved) {
        case (nil, false): self = .unspecified
        case (let keyring?, false): self = .keyring(keyring)
        case (nil, true): self = .removed
        case (_?, true): throw RecoveryProblem.keptAndRemoved
        }
    }

    var isSpecified: Bool {
        if case .unspecified = self { false } else { true }
    }

    /// Whether it puts another keyring behind the code.
    var replacesKeyring: Bool {
        if case .keyring = self { true } else { false }
    }

    /// Carries it out, for a transaction that holds the account's row. Where there is no recovery nothing is done.
    /// - Parameter hasRecovery: Whether there is one before.
    /// - Returns: Whether there is one now.
    func apply(
        _ transaction: Transaction, to accountID: AccountID, hasRecovery: Bool, now: Timestamp
    ) async throws -> Bool {
        guard hasRecovery else { return false }
        switch self {
        case .unspecified: return true
        case .keyring(let keyring):
            _ = try await transaction.execute(ReplaceRecoveryKeyring(accountID: accountID, keyring: keyring))
            return true
        case .removed:
            let event = RecordSecurityEvent(accountID: accountID, kind: .recoveryRemoved, now: now)
            _ = try await transaction.execute(
                DeleteRecovery(accountID: accountID), RemoveKeptRecoveryKeyrings(accountID: accountID),
                RemoveRestrictedSessions(accountID: accountID), event, DropOldEvents(after: event))
            return false
        }
    }

    /// Writes the member of a reply that says whether a code opens the account.
    static func write(isSet: Bool, to writer: inout JSONWriter) {
        writer.object("recovery") { writer in writer.member("set", isSet) }
    }
}
