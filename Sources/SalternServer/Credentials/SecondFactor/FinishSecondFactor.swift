internal import HTTPCore
internal import Postgres

/// `POST /v1/account/totp/confirm`: a code shows that the person's app has the secret. From now on log-ins need one. The
/// recovery codes are shown, once, and the code is used up.
///
/// Existing sessions go on. A repeated confirmation is refused, because codes are stored as hashes and cannot be shown again.
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
        // Somebody else was faster with the same code, or with another secret.
        guard !confirmed.isEmpty else { throw SecondFactorProblem.nothingPending }
        return .recoveryCodes(codes)
    }
}

extension Response {
    /// The reply that shows a set of recovery codes.
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
