internal import HTTPCore

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
