internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/recovery`: sets or replaces the recovery key and its keyring. In the same transaction it replaces
/// the account's keyring if that stores how to seal to the recovery.
///
/// The request names the revision of the account's keyring whose data keys the code opens. The keyring takes its next
/// revision even if it stays unchanged. Old keys are therefore never sealed to a new code, nor new keys to an old one.
///
/// Setting the present key and keyring again changes nothing, so a retry after a lost reply is safe. Replacing a key
/// ends the sessions that the old one opened.
struct SetRecovery: AccountEndpoint {
    fileprivate struct Body {
        let currentKey: PasswordKey
        let recoveryKey: PasswordKey
        let keyring: Keyring?
        let accountKeyring: Keyring?
        let accountKeyringRevision: Int64?

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            currentKey = try members.required("currentPasswordKey", PasswordKey.init(json:))
            recoveryKey = try members.required("recoveryKey", PasswordKey.init(json:))
            keyring = try members.optional("keyring", Keyring.init(json:))
            accountKeyring = try members.optional("accountKeyring", Keyring.init(json:))
            accountKeyringRevision = try members.optional("accountKeyringRevision") {
                Int64(try $0.integer(in: 0...Int.max))
            }
            if accountKeyring != nil, accountKeyringRevision == nil {
                throw Problem(
                    .unprocessableContent, "missing_member",
                    detail: "`keyring` needs `accountKeyringRevision`, the revision that it replaces.",
                    field: "accountKeyringRevision")
            }
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let body = try Body(request)
        let proven = try await authorization.prove(body.currentKey)
        let verifier = body.recoveryKey.verifier
        guard verifier != proven.verifier else { throw RecoveryProblem.keyReused }
        let write = WriteRecovery(
            accountID: proven.accountID, verifier: verifier, keyring: body.keyring, now: proven.now)
        let keyringRevision = try await authorization.change(as: proven) { transaction in
            let findHolders = Owned(accountID: proven.accountID, read: FindKeyHolders())
            let present = try await transaction.execute(findHolders).first?.keyringRevision
            let before = try await transaction.replaceableKeyrings(of: proven.accountID, now: proven.now)
            let written = try await body.replaceAccountKeyring(transaction, proven.caller)
            if let before, written?.outcome == .updated {
                try await transaction.keep(before, of: proven.accountID, isProven: true, now: proven.now)
            }
            if try await transaction.execute(write).isEmpty { return written?.revision ?? present }
            let event = RecordSecurityEvent(accountID: proven.accountID, kind: .recoverySet, now: proven.now)
            _ = try await transaction.execute(
                RemoveKeptRecoveryKeyrings(accountID: proven.accountID),
                RemoveRestrictedSessions(accountID: proven.accountID), event, DropOldEvents(after: event))
            if let written, written.outcome != .unchanged { return written.revision }
            return try await body.moveKeyring(transaction, from: present, of: proven.accountID)
        }
        return .json { writer in
            writer.object { writer in
                RecoveryChange.write(isSet: true, to: &writer)
                if let keyringRevision { writer.member("keyringRevision", keyringRevision) }
            }
        }
    }
}

extension SetRecovery.Body {
    /// - Returns: The result of the write. Nil if the request has no keyring of the account.
    /// - Throws: ``CredentialProblem/keyringChanged``, ``Unauthenticated``, or a `PostgresError`.
    fileprivate func replaceAccountKeyring(
        _ transaction: Transaction, _ caller: Caller
    ) async throws -> WriteKeyring.Row? {
        guard let accountKeyring, let revision = accountKeyringRevision else { return nil }
        let write = WriteKeyring(
            precondition: revision == 0 ? .absent : .revision(revision), keyring: accountKeyring, coversRecovery: true)
        guard let written = try await transaction.execute(Guarded(caller: caller, write: write)).first else {
            throw Unauthenticated()
        }
        if written.outcome == .preconditionFailed { throw Self.keyringChanged }
        return written
    }

    /// Gives an unchanged keyring its next revision. Another device's write for the previous code then fails instead of
    /// replacing the keys that this code opens.
    ///
    /// - Parameter present: The keyring's revision. Nil without a keyring.
    /// - Returns: Its new revision. Nil without a keyring.
    /// - Throws: ``CredentialProblem/keyringRequired`` if the request has data keys without their revision,
    ///   ``CredentialProblem/keyringChanged`` if they are not the present ones, or a `PostgresError`.
    fileprivate func moveKeyring(
        _ transaction: Transaction, from present: Int64?, of accountID: AccountID
    ) async throws -> Int64? {
        if let said = accountKeyringRevision, said != present ?? 0 { throw Self.keyringChanged }
        guard let present else { return nil }
        guard keyring == nil || accountKeyringRevision != nil else {
            var problem = CredentialProblem.keyringRequired(present: present).problem
            problem.detail = "The account has a keyring. Send its revision as `accountKeyringRevision`."
            problem.field = "accountKeyringRevision"
            throw problem
        }
        return try await transaction.execute(MoveKeyringRevision(accountID: accountID)).first
    }

    private static var keyringChanged: Problem {
        var problem = CredentialProblem.keyringChanged.problem
        problem.field = "accountKeyringRevision"
        return problem
    }
}

/// `DELETE /v1/account/recovery`: removes the recovery key and ends the sessions that it opened.
struct RemoveRecovery: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(request)
        try await authorization.change(as: proven) { transaction in
            let removed = try await transaction.execute(DeleteRecovery(accountID: proven.accountID))
            if removed.isEmpty { throw Problem.notFound }
            let event = RecordSecurityEvent(accountID: proven.accountID, kind: .recoveryRemoved, now: proven.now)
            _ = try await transaction.execute(
                RemoveKeptRecoveryKeyrings(accountID: proven.accountID),
                RemoveRestrictedSessions(accountID: proven.accountID), event, DropOldEvents(after: event))
        }
        return .noContent
    }
}

/// Sets or replaces the recovery key. Returns no row if key and keyring are already set. The account's row must be
/// locked.
struct WriteRecovery: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let verifier: Verifier
    let keyring: Keyring?
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.recoveries AS r (account_id, verifier, keyring, created_at)
            VALUES (\(\.accountID), \(\.verifier), \(\.keyring?.bytes), \(\.now))
        ON CONFLICT (account_id) DO UPDATE
        SET verifier = excluded.verifier, keyring = excluded.keyring, created_at = excluded.created_at,
            last_used_at = NULL, completed_token_hash = NULL, completed_until = NULL, completed_revision = NULL
        WHERE r.verifier <> excluded.verifier OR r.keyring IS DISTINCT FROM excluded.keyring
        RETURNING r.account_id
        """
}

/// Gives the account's keyring its next revision. The account's row must be locked.
struct MoveKeyringRevision: Statement {
    typealias Row = Int64

    let accountID: AccountID

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a SET keyring_revision = \(AccountCounter.next("a.keyring_revision"))
        WHERE a.account_id = \(\.accountID) AND a.keyring IS NOT NULL
        RETURNING a.keyring_revision
        """
}
