internal import HTTPCore
internal import Postgres

/// A second factor as stored in the database.
struct StoredSecondFactor: Sendable {
    /// The secret of the one-time passwords, sealed with the master key for its account.
    let sealedSecret: [UInt8]
    /// The time at which the secret was created. It identifies the secret within the account, even when the secret is
    /// resealed.
    let enrolledAt: Timestamp
    /// The time step of the latest accepted code.
    let lastStep: Int64

    /// Reads sealed secret, time of enrolment and latest step. Nil if they are null, because there is no second factor.
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

    /// Opens the one-time passwords.
    ///
    /// - Throws: ``SecondFactorUnreadable`` if no master key opens the secret.
    func passwords(of account: AccountID, _ masterKey: MasterKey) throws(SecondFactorUnreadable) -> OneTimePasswords {
        do throws(MasterKeyError) {
            return OneTimePasswords(secret: try masterKey.open(sealedSecret, for: .oneTimePasswords(of: account)))
        } catch {
            throw SecondFactorUnreadable(accountID: account, reason: error)
        }
    }
}

/// The error of a second factor whose secret cannot be opened: the master key is missing, or the row was changed. It
/// never lets a log-in skip the second factor. The reason is logged for the operator.
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
