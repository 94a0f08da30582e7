internal import HTTPCore
internal import Postgres

/// A second factor as the database has it.
struct StoredSecondFactor: Sendable {
    /// The secret of the one-time passwords, sealed with the master key for its account.
    let sealedSecret: [UInt8]
    /// When the secret was made: which one it is, as long as the account has it, however often it is sealed anew.
    let enrolledAt: Timestamp
    /// The time step of the latest code that was accepted.
    let lastStep: Int64

    /// Reads sealed secret, time of enrolment and latest step; nil when they are null, because there is none.
    init?(row: inout RowReader) throws(PostgresError) {
        let sealedSecret: [UInt8]? = try row.next()
        let enrolledAt: Timestamp? = try row.next()
        let lastStep: Int64? = try row.next()
        guard let sealedSecret, let enrolledAt, let lastStep else { return nil }
        self.sealedSecret = sealedSecret
        self.enrolledAt = enrolledAt
        self.lastStep = lastStep
    }

    init(sealedSecret: [UInt8], enrolledAt: Timestamp, lastStep: Int64) {
        self.sealedSecret = sealedSecret
        self.enrolledAt = enrolledAt
        self.lastStep = lastStep
    }

    /// The one-time passwords.
    /// - Throws: ``SecondFactorUnreadable`` when none of the master keys opens the secret.
    func passwords(of account: AccountID, _ masterKey: MasterKey) throws(SecondFactorUnreadable) -> OneTimePasswords {
        do throws(MasterKeyError) {
            return OneTimePasswords(secret: try masterKey.open(sealedSecret, for: .oneTimePasswords(of: account)))
        } catch {
            throw SecondFactorUnreadable(accountID: account, reason: error)
        }
    }
}

/// The secret of an account's second factor cannot be opened: the master key is missing, or the row was tampered with.
/// Nobody gets past the second factor because of it; the operator is told why.
struct SecondFactorUnreadable: OperatorProblem {
    let accountID: AccountID
    let reason: MasterKeyError

    func write(to log: Log, requestID: RequestID) {
        log.write(
            .error, "second_factor_unreadable",
            ["requestId": requestID, "accountId": accountID.uuid, "error": OperatorText("\(reason)")])
    }

    var problem: Problem {
        Problem(
            .serviceUnavailable, "second_factor_unavailable",
            detail: "The server cannot check one-time codes now. A recovery code works.",
            responseFields: ["Retry-After": "60"])
    }
}
