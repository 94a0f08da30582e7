internal import Postgres

/// The end of a log-in whose key was right: opens the session at once, or when the account has a second factor, with the
/// code that was shown.
struct SecondFactorCheck: Sendable {
    let database: PostgresClient
    let masterKey: MasterKey

    /// The factor may be removed, or exchanged, between the two statements: then the first one is asked again.
    private static let attemptLimit = 2

    /// Opens the session.
    /// - Returns: Nil when ``OpenSession`` opens none.
    /// - Throws: ``SecondFactorProblem/required`` without a code, ``SecondFactorProblem/wrongCode`` when it is wrong or
    ///   used, ``SecondFactorUnreadable``, or a `PostgresError`.
    func open(_ opening: OpenSession, _ code: SecondFactorCode?) async throws -> OpenSession.Row? {
        for _ in 0..<Self.attemptLimit {
            guard let account = try await database.execute(opening).first else { return nil }
            guard let factor = account.secondFactor else { return account }
            switch code {
            case nil:
                throw SecondFactorProblem.required
            case .recovery(let code):
                let hash = code.hash(for: opening.accountID)
                let statement = OpenSessionWithRecoveryCode(opening: opening, codeHash: hash)
                if let opened = try await database.execute(statement).first { return opened }
            case .oneTime(let code):
                let passwords = try factor.passwords(of: opening.accountID, masterKey)
                guard let step = passwords.step(of: code, at: opening.now, after: factor.lastStep) else {
                    throw SecondFactorProblem.wrongCode
                }
                let statement = OpenSessionWithOneTimeCode(
                    opening: opening, enrolledAt: factor.enrolledAt, step: step)
                if let opened = try await database.execute(statement).first { return opened }
            }
        }
        throw SecondFactorProblem.wrongCode
    }
}
