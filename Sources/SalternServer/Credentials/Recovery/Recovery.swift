internal import HTTPCore

/// The second way into an account: a key that the client derives from a printed code.
enum Recovery {
    /// How long the session lasts that a recovery opens. It can only set a new credential.
    static let sessionLifetime = Duration.seconds(900)
}

/// Why a recovery key was not set.
enum RecoveryProblem: ProblemConvertible {
    /// It is the account's password key.
    case keyReused
    /// There is a recovery, and the request does not say what becomes of it.
    case keyringRequired
    /// The request has a keyring for the recovery and removes it.
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
