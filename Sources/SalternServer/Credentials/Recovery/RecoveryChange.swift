internal import HTTPCore
internal import Postgres

/// The change of the recovery when data keys change. Without one, the printed code would open only the old keys.
enum RecoveryChange: Sendable {
    /// The request does not mention the recovery.
    case unspecified
    /// The new recovery keyring.
    case keyring(Keyring)
    /// The recovery is removed.
    case removed

    /// Reads `recoveryKeyring` and `removeRecovery`.
    ///
    /// - Throws: 422 `conflicting_members`, or the error of a member.
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

    /// True if it replaces the recovery keyring.
    var replacesKeyring: Bool {
        if case .keyring = self { true } else { false }
    }

    /// Applies the change in a transaction that holds the account's row. Without a recovery it does nothing.
    ///
    /// - Parameter hasRecovery: True if there is a recovery before the change.
    /// - Returns: True if there is one after it.
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

    /// Writes the member of a reply with the existence of a recovery code.
    static func write(isSet: Bool, to writer: inout JSONWriter) {
        writer.object("recovery") { writer in writer.member("set", isSet) }
    }
}

/// The recovery of an account by a key that the client derives from a printed code.
enum Recovery {
    /// The life of a recovery's session, which can only set a new credential.
    static let sessionLifetime = Duration.seconds(900)
}

/// Reasons to reject a recovery key or its keyring.
enum RecoveryProblem: ProblemConvertible {
    /// The key is the account's password key.
    case keyReused
    /// The account has a recovery that the request does not cover.
    case keyringRequired
    /// The request both sets a recovery keyring and removes the recovery.
    case keptAndRemoved

    var problem: Problem {
        switch self {
        case .keyReused:
            Problem(
                .unprocessableContent, "recovery_key_reused",
                detail: "`recoveryKey` equals the password key. Derive it from a separate code.",
                field: "recoveryKey")
        case .keyringRequired:
            Problem(
                .preconditionRequired, "recovery_keyring_required",
                detail:
                    "The account has a recovery code. Send `recoveryKeyring` with the present data keys, or `removeRecovery`.",
                field: "recoveryKeyring")
        case .keptAndRemoved:
            Problem(
                .unprocessableContent, "conflicting_members",
                detail: "Send either `recoveryKeyring` or `removeRecovery`.", field: "removeRecovery")
        }
    }
}

/// Replaces the recovery keyring. The account's row must be locked.
struct ReplaceRecoveryKeyring: Statement {
    let accountID: AccountID
    let keyring: Keyring

    static let sql: SQL<Self> = """
        UPDATE saltern.recoveries r SET keyring = \(\.keyring.bytes) WHERE r.account_id = \(\.accountID)
        """
}

/// Removes the recovery key. Returns no row if there was none.
struct DeleteRecovery: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.recoveries r WHERE r.account_id = \(\.accountID) RETURNING r.account_id"
}

/// Ends the restricted sessions of recoveries.
struct RemoveRestrictedSessions: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.sessions s WHERE s.account_id = \(\.accountID) AND s.restricted"
}
