internal import HTTPCore
internal import Postgres

/// `POST /v1/account/totp/confirm`: confirms the second factor by a code, which is used up. Log-ins require one from
/// then on. The reply returns the recovery codes once.
///
/// Existing sessions continue. A repeated confirmation is rejected: the recovery codes are stored as hashes and cannot
/// be returned again.
struct FinishSecondFactor: AccountEndpoint {
    private let masterKey: MasterKey

    init(_ parts: Dependencies) {
        masterKey = parts.configuration.masterKey
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let shown = try JSONBody.read(request) { try $0.required("totp", SecondFactorCode.init(json:)) }
        guard let found = try await authorization.read(FindSecondFactor()).first else {
            throw SecondFactorProblem.nothingPending
        }
        guard !found.isConfirmed else { throw SecondFactorProblem.isEnabled }
        let account = authorization.accountID
        let passwords = try found.factor.passwords(of: account, masterKey)
        guard let userid = try await authorization.read(FindUserid()).first else { throw Unauthenticated() }
        let step = try await authorization.attempt(userid).run { check -> CheckResult<Int64> in
            guard case .oneTime(let code) = shown,
                let step = passwords.step(of: code, at: check.now, after: found.factor.lastStep)
            else { return .wrong(.confirmation, SecondFactorProblem.wrongConfirmation) }
            return .right(step)
        }
        let codes = SecondFactorRecoveryCode.randomSet()
        let confirmation = ConfirmSecondFactor(enrolledAt: found.factor.enrolledAt, step: step)
        let event = RecordSecurityEvent(
            accountID: account, kind: .totpEnabled, now: authorization.now, writer: confirmation.writer)
        let confirmed = try await authorization.write(
            confirmation,
            followedBy: StoreFirstCodes(
                confirmation: confirmation, accountID: account, codes: codes.map { $0.hash(for: account) }),
            event, DropOldEvents(after: event)
        ).first
        // A concurrent request has confirmed with the same code, or stored another secret.
        guard !confirmed.isEmpty else { throw SecondFactorProblem.nothingPending }
        return .recoveryCodes(codes)
    }
}

extension Response {
    /// Returns a set of recovery codes as a reply.
    static func recoveryCodes(_ codes: [SecondFactorRecoveryCode]) -> Response {
        .json { writer in
            writer.object { writer in
                writer.array("recoveryCodes") { writer in
                    for code in codes { code.write(to: &writer) }
                }
            }
        }
    }
}

/// Reasons to reject a second factor or its code.
enum SecondFactorProblem: ProblemConvertible {
    /// The password key is right, and the account also requires a code.
    case required
    /// The password key is right, and the account has passkeys. Carries request options if the server accepts passkeys.
    case passkeyRequired(hasCodes: Bool, JSONValue?)
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
        case .passkeyRequired(let hasCodes, let options):
            Problem(
                .unauthorized, "second_factor_required",
                detail: "The account has a second factor. Send the same request with one of `factors`.",
                members: [
                    (name: "factors", value: .array((hasCodes ? ["totp"] : []) + (options == nil ? [] : ["passkey"])))
                ] + (options.map { [(name: "publicKey", value: $0)] } ?? []),
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
