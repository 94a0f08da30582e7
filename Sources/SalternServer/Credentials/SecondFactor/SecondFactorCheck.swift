internal import Postgres

/// Completes a log-in with the right key to an account with a second factor: opens the session with the presented code.
struct SecondFactorCheck: Sendable {
    let masterKey: MasterKey

    /// Opens the session or rejects the code, in one transaction with the count of a failure.
    ///
    /// - Parameters:
    ///   - factor: The second factor that an earlier statement found. Nil if none was sent.
    ///   - completion: Runs in the transaction after the session is stored, and only then.
    /// - Returns: Undecided with ``SecondFactorProblem/required`` if the code is missing.
    /// - Throws: ``SecondFactorUnreadable``, or a `PostgresError`.
    func open(
        _ opening: OpenSession, _ factor: StoredSecondFactor?, _ code: SecondFactorCode?, _ check: SecretCheck,
        completion: @Sendable (Transaction) async throws -> Void = { _ in }
    ) async throws -> CheckResult<OpenSession.Row> {
        if factor != nil && code == nil { return .undecided(SecondFactorProblem.required) }
        return try await check.transaction(of: opening.accountID) { transaction in
            let result = try await open(opening, factor, code, transaction)
            if case .right = result { try await completion(transaction) }
            return result
        }
    }

    private func open(
        _ opening: OpenSession, _ found: StoredSecondFactor?, _ code: SecondFactorCode?, _ transaction: Transaction
    ) async throws -> CheckResult<OpenSession.Row> {
        var factor = found
        while true {
            if let factor, let code, let opened = try await use(code, factor, opening, transaction) {
                return .right(opened)
            }
            // The factor may have been removed or replaced since it was read. The first statement is then sent again;
            // it opens a session if there is no factor.
            let (accounts, stored) = try await transaction.execute(opening, StoreSession(opening: opening))
            guard let account = accounts.first else { return .wrong(.passwordKey, WrongCredentials()) }
            guard let present = account.secondFactor else {
                if stored.first?.count == 1 { return .right(account) }
                continue
            }
            if code == nil { return .undecided(SecondFactorProblem.required) }
            if present.enrolledAt == factor?.enrolledAt {
                return .wrong(.secondFactor, SecondFactorProblem.wrongCode)
            }
            // The account is locked by now, so the factor can no longer be replaced.
            factor = present
        }
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

extension InsertSession {
    /// Creates the session that a log-in opens.
    fileprivate init(_ opening: OpenSession) {
        self.init(
            accountID: opening.accountID, tokenHash: opening.tokenHash, sessionID: opening.sessionID,
            deviceName: opening.deviceName, now: opening.now, expiresAt: opening.expiresAt)
    }
}
