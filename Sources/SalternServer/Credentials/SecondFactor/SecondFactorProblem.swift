internal import HTTPCore

/// Why a second factor was not set up, or did not open a session.
enum SecondFactorProblem: ProblemConvertible {
    /// The password key is right, and the account wants a code too.
    case required
    /// The code is wrong, has expired or was used before: nobody is told which.
    case wrongCode
    /// The code does not belong to the secret that waits to be confirmed.
    case wrongConfirmation
    case isEnabled
    case isNotEnabled
    case nothingPending

    var problem: Problem {
        switch self {
        case .required:
            Problem(
                .unauthorized, "totp_required",
                detail: "The account has a second factor. Send the same request with `totp`.",
                responseFields: ["WWW-Authenticate": "Bearer"])
        case .wrongCode:
            Problem(
                .unauthorized, "wrong_totp", detail: "`totp` is wrong, too old or already used.", field: "totp",
                responseFields: ["WWW-Authenticate": "Bearer"])
        case .wrongConfirmation:
            Problem(
                .forbidden, "wrong_totp", detail: "`totp` is not the present code for the secret.",
                field: "totp")
        case .isEnabled:
            Problem(
                .conflict, "totp_enabled",
                detail: "The account has a second factor. Remove it before you set up another one.")
        case .isNotEnabled:
            Problem(.conflict, "totp_not_enabled", detail: "The account has no second factor.")
        case .nothingPending:
            Problem(
                .conflict, "totp_not_pending", detail: "There is no secret to confirm. Set up the second factor first.")
        }
    }
}
