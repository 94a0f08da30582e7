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

    var problem: Problem {
        switch self {
        case .keyReused:
            Problem(
                .unprocessableContent, "recovery_key_reused",
                detail: "This is the password key. Derive the recovery key from a code of its own.",
                field: "recoveryKey")
        }
    }
}
