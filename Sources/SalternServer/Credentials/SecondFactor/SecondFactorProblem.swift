internal import HTTPCore

/// Reasons to reject a second factor or its code.
enum SecondFactorProblem: ProblemConvertible {
    /// The password key is right, and the account also requires a code.
    case required
    /// The code is wrong, expired or used. Clients do not receive the reason.
    case wrongCode
    /// The code does not match the unconfirmed secret.
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
