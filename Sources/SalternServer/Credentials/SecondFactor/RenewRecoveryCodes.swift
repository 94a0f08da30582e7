internal import HTTPCore
internal import Postgres

/// `POST /v1/account/totp/recovery-codes`: replaces the remaining recovery codes by ten new ones.
struct RenewRecoveryCodes: AccountEndpoint {
    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        proofs = ProofReader(parts, for: .renewRecoveryCodes)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(proofs.read(request))
        let account = proven.accountID
        let codes = SecondFactorRecoveryCode.randomSet()
        try await authorization.change(as: proven) { transaction in
            let event = RecordSecurityEvent(accountID: account, kind: .totpCodesRenewed, now: proven.now)
            let (_, stored, _, _) = try await transaction.execute(
                RemoveSecondFactorCodes(accountID: account),
                InsertSecondFactorCodes(accountID: account, codes: codes.map { $0.hash(for: account) }), event,
                DropOldEvents(after: event))
            guard !stored.isEmpty else { throw SecondFactorProblem.isNotEnabled }
        }
        return .recoveryCodes(codes)
    }
}
