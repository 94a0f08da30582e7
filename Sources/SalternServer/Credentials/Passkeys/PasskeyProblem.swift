internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// The reason why a passkey was not added, changed or accepted.
enum PasskeyProblem: ProblemConvertible {
    /// The operator has configured no id for passkeys.
    case off
    case malformed
    case prfOutput
    /// The response does not verify.
    case refused(WebAuthnFailure)
    case exists
    case tooMany
    case invalidName
    /// The unlock box belongs to a passkey that does not log in.
    case doesNotLogIn
    /// The account has no passkey that logs in.
    case noneLogsIn
    case invalidBox
    /// A change of the password key lacks the boxes of these passkeys, or contains those of others.
    case boxesRequired([PasskeyID])

    /// The most passkeys of an account.
    static let limit = 20

    var problem: Problem {
        switch self {
        case .off: Problem(.notFound, "passkeys_off", detail: "This server accepts no passkeys.")
        case .malformed:
            Problem(
                .unprocessableContent, "malformed_credential",
                detail: "The credential must be what `toJSON()` of a PublicKeyCredential returns.")
        case .prfOutput:
            Problem(
                .unprocessableContent, "prf_output_refused",
                detail: "The server never accepts an output of PRF. Remove `clientExtensionResults.prf.results`.")
        case .refused(let failure):
            Problem(
                .unprocessableContent, "passkey_refused",
                detail: "The passkey does not verify. `reason` names the check.",
                members: [(name: "reason", value: .string(failure.rawValue))])
        case .exists: Problem(.conflict, "passkey_exists", detail: "The account has this passkey.")
        case .tooMany:
            Problem(
                .conflict, "too_many_passkeys", detail: "The account has \(Self.limit) passkeys. Remove one first.",
                limit: Self.limit)
        case .invalidName:
            Problem(
                .unprocessableContent, "invalid_passkey_name",
                detail: "The name of a passkey must have 1 to 64 characters and no control characters.", limit: 64)
        case .doesNotLogIn:
            Problem(
                .conflict, "passkey_does_not_log_in", detail: "Only a passkey with `logsIn` can have an unlock box.")
        case .noneLogsIn:
            Problem(.conflict, "passkey_does_not_log_in", detail: "The account has no passkey with `logsIn`.")
        case .invalidBox:
            Problem(
                .unprocessableContent, "invalid_unlock_box", detail: "The value must be base64 of 1 to 1024 bytes.",
                limit: PasskeyBox.byteLimit)
        case .boxesRequired(let ids):
            Problem(
                .preconditionRequired, "passkey_boxes_required",
                detail:
                    "`passkeyBoxes` must have a new unlock box, or null, for each passkey of `passkeys`, and no other.",
                field: "passkeyBoxes",
                members: [(name: "passkeys", value: .array(ids.map { .string($0.text) }))])
        }
    }
}

/// Rejects an assertion. The reply is the same for all reasons, which are logged.
struct WrongPasskey: OperatorProblem {
    let accountID: AccountID?
    /// Nil if the challenge or the passkey is unknown.
    let failure: WebAuthnFailure?
    /// True if the request has a session, which stays valid.
    var isInSession = false

    func write(to log: Log, requestID: RequestID) {
        // A copy of the authenticator may be in use.
        log.write(
            failure == .signCountDidNotGrow ? .warning : .info, "passkey_refused",
            [
                "requestId": requestID, "accountId": accountID?.uuid ?? .zero,
                "reason": OperatorText(failure?.rawValue ?? "unknown_passkey_or_challenge"),
            ])
    }

    var problem: Problem {
        if isInSession {
            return Problem(
                .forbidden, "wrong_passkey",
                detail: "The passkey does not log in, or its signature or challenge is not accepted for this request.")
        }
        return Problem(
            .unauthorized, "wrong_passkey",
            detail: "The passkey is unknown, or its signature or challenge is not accepted.",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}
