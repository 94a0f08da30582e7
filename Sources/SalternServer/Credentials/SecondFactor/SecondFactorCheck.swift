internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// Completes a log-in with the right key to an account with a second factor: opens the session with the presented code.
struct SecondFactorCheck: Sendable {
    let masterKey: MasterKey
    let passkeys: PasskeyVerifier
    let outbox: Outbox

    /// Opens the session or rejects the proof, in one transaction with the count of a wrong code. Wrong assertions
    /// count only for the address, because signatures cannot be guessed.
    ///
    /// - Parameters:
    ///   - found: The account that an earlier statement found. Nil if none was sent.
    ///   - completion: Runs in the transaction after the session is stored, and only then.
    /// - Returns: Undecided with the required factor if the proof is missing.
    /// - Throws: ``SecondFactorUnreadable``, or a `PostgresError`.
    func open(
        _ opening: OpenSession, _ found: OpenSession.Row?, _ proof: SecondFactorProof?, _ check: SecretCheck,
        completion: @Sendable (Transaction) async throws -> Void = { _ in }
    ) async throws -> CheckResult<OpenSession.Row> {
        if let found, proof == nil, !found.hasPasskeys { return .undecided(SecondFactorProblem.required) }
        do {
            return try await check.transaction(of: opening.accountID) { transaction in
                let result = try await open(opening, found?.secondFactor, proof, transaction)
                if case .right = result {
                    transaction.report(opening, to: outbox)
                    try await completion(transaction)
                }
                return result
            }
        } catch let error as any RejectedPasskeyUse {
            // The error has rolled the transaction back.
            return .undecided(error)
        }
    }

    private func open(
        _ opening: OpenSession, _ found: StoredSecondFactor?, _ proof: SecondFactorProof?, _ transaction: Transaction
    ) async throws -> CheckResult<OpenSession.Row> {
        var factor = found
        while true {
            if let factor, case .code(let code)? = proof, let opened = try await use(code, factor, opening, transaction)
            {
                return .right(opened)
            }
            // The factor may have been removed or replaced since it was read. The first statement is then sent again;
            // it opens a session if there is no factor.
            let (accounts, stored) = try await transaction.execute(opening, StoreSession(opening: opening))
            guard let account = accounts.first else { return .wrong(.passwordKey, WrongCredentials()) }
            guard account.needsSecondFactor else {
                if stored.first?.count == 1 { return .right(account) }
                continue
            }
            switch proof {
            case nil: return .undecided(try await required(account, opening, transaction))
            case .passkey(let response): return try await use(response, opening, transaction)
            case .code:
                guard let present = account.secondFactor else {
                    return .undecided(try await required(account, opening, transaction))
                }
                if present.enrolledAt == factor?.enrolledAt {
                    return .wrong(.secondFactor, SecondFactorProblem.wrongCode)
                }
                // The transaction has locked the account, so its second factor cannot change any more.
                factor = present
            }
        }
    }

    /// Returns the problem of a log-in without a second factor, with a challenge for the account's passkeys.
    private func required(
        _ account: OpenSession.Row, _ opening: OpenSession, _ transaction: Transaction
    ) async throws -> any ProblemConvertible {
        guard account.hasPasskeys else { return SecondFactorProblem.required }
        let ids = try await transaction.execute(Owned(accountID: opening.accountID, read: FindPasskeyIDs()))
        let options = passkeys.relyingParty.map { relyingParty in
            PasskeyOptions.request(
                passkeys.challenges.make(for: .secondFactor(opening.accountID), now: opening.now), relyingParty,
                allowed: ids, verifiesUser: false)
        }
        return SecondFactorProblem.passkeyRequired(hasCodes: account.secondFactor != nil, options)
    }

    /// Opens the session with an assertion. Undecided if it is wrong.
    ///
    /// - Throws: ``RejectedPasskeyUse``, after which the transaction must be rolled back, or a `PostgresError`.
    private func use(
        _ response: AuthenticationResponse, _ opening: OpenSession, _ transaction: Transaction
    ) async throws -> CheckResult<OpenSession.Row> {
        let account = opening.accountID
        let find = Owned(accountID: account, read: FindUsablePasskey(id: response.id))
        guard let passkey = try await transaction.execute(find).first else {
            return .undecided(WrongPasskey(accountID: account, failure: nil))
        }
        let accepted: (challenge: PasskeyChallenge, verified: Assertion.Verified)
        do {
            accepted = try passkeys.verify(
                response, of: account, passkey, for: .secondFactor(account), .secondFactor, now: opening.now)
        } catch let error as any ProblemConvertible {
            return .undecided(error)
        }
        return .right(try await transaction.use(passkey, accepted.challenge, accepted.verified, for: opening))
    }

    /// Uses the code up and opens the session. Nil if the code is wrong, used, or of another secret.
    private func use(
        _ code: SecondFactorCode, _ factor: StoredSecondFactor, _ opening: OpenSession, _ transaction: Transaction
    ) async throws -> OpenSession.Row? {
        let opened: OpenSession.Row?
        switch code {
        case .recovery(let code):
            let hash = code.hash(for: opening.accountID)
            opened = try await transaction.execute(OpenSessionWithRecoveryCode(opening: opening, codeHash: hash)).first
            if opened != nil {
                let event = RecordSecurityEvent(
                    accountID: opening.accountID, kind: .totpCodeUsed, now: opening.now,
                    sessionID: opening.sessionID, deviceName: opening.deviceName)
                transaction.enqueue(event)
                transaction.enqueue(DropOldEvents(after: event))
            }
        case .oneTime(let code):
            let passwords = try factor.passwords(of: opening.accountID, masterKey)
            guard let step = passwords.step(of: code, at: opening.now, after: factor.lastStep) else { return nil }
            let statement = OpenSessionWithOneTimeCode(opening: opening, enrolledAt: factor.enrolledAt, step: step)
            opened = try await transaction.execute(statement).first
        }
        if opened != nil { transaction.enqueue(InsertSession(opening)) }
        return opened
    }
}

extension Transaction {
    /// Sends the outgoing event of a session that this transaction opens, if a destination receives the kind.
    func report(_ opening: OpenSession, to outbox: Outbox) {
        guard outbox.gets(.sessionOpened) else { return }
        let event = QueueOpenedSession(opening)
        enqueue(event)
        enqueue(StoreOpenedSession(queue: event))
    }
}

extension QueueOpenedSession {
    /// The session that a log-in opens.
    init(_ opening: OpenSession) {
        self.init(accountID: opening.accountID, sessionID: opening.sessionID, now: opening.now)
    }
}

/// The second proof of a log-in, besides the password key.
enum SecondFactorProof: Sendable {
    case code(SecondFactorCode)
    case passkey(AuthenticationResponse)
}

extension InsertSession {
    /// Creates the session that a log-in opens.
    init(_ opening: OpenSession, by passkey: PasskeyHash? = nil) {
        self.init(
            accountID: opening.accountID, tokenHash: opening.tokenHash, sessionID: opening.sessionID,
            deviceName: opening.deviceName, now: opening.now, expiresAt: opening.expiresAt, passkey: passkey)
    }
}

/// Uses up a one-time password for the session of ``OpenSession``. If it returns a row, ``InsertSession`` stores the
/// session in the same transaction.
///
/// Concurrent requests with the same code wait for the row. Only the first finds the step unused.
struct OpenSessionWithOneTimeCode: Statement {
    let opening: OpenSession
    /// The time at which the code's secret was created.
    let enrolledAt: Timestamp
    /// The step of the presented code.
    let step: Int64

    static let sql: SQL<Self> = """
        WITH \(OpenSession.account, of: \.opening), used AS (
            UPDATE saltern.second_factors f SET last_step = \(\.step) FROM account a
            WHERE f.account_id = \(\.opening.accountID) AND f.confirmed_at IS NOT NULL
                AND f.created_at = \(\.enrolledAt)
                AND f.last_step < \(\.step)
            RETURNING f.account_id
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}

/// Uses up a recovery code of the second factor for the session of ``OpenSession``. If it returns a row, the same
/// transaction stores the session (``InsertSession``) and an event.
struct OpenSessionWithRecoveryCode: Statement {
    let opening: OpenSession
    let codeHash: SecondFactorRecoveryCodeHash

    static let sql: SQL<Self> = """
        WITH \(OpenSession.account, of: \.opening), used AS (
            DELETE FROM saltern.second_factor_codes c USING account a
            WHERE c.account_id = \(\.opening.accountID) AND c.code_hash = \(\.codeHash) AND a.sealed_secret IS NOT NULL
            RETURNING c.account_id
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}

/// A code for the second factor: the digits of an authenticator app, or a recovery code.
enum SecondFactorCode: Sendable {
    case oneTime(OneTimeCode)
    case recovery(SecondFactorRecoveryCode)

    /// Reads a typed or pasted code. White space, dashes and the case of letters are ignored.
    init(json: JSONValue) throws {
        guard let code = try SecondFactorCode(optional: json) else { throw MalformedSecondFactorCode() }
        self = code
    }

    /// Reads an optional code. Nil if the text is empty, like an empty field of a form.
    init?(optional json: JSONValue) throws {
        guard let digits = PastedCode.read(try json.text(), keepsHyphens: false) else {
            throw MalformedSecondFactorCode()
        }
        if digits.isEmpty { return nil }
        if let code = OneTimeCode(digits) {
            self = .oneTime(code)
        } else if let code = SecondFactorRecoveryCode(digits) {
            self = .recovery(code)
        } else {
            throw MalformedSecondFactorCode()
        }
    }
}

/// The error of a malformed code for the second factor.
struct MalformedSecondFactorCode: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unprocessableContent, "malformed_totp",
            detail: "`totp` must be a code of six digits, or a recovery code of twenty letters and digits.")
    }
}
