internal import HTTPCore
internal import Postgres

/// `DELETE /v1/account/totp`: removes the second factor, its recovery codes, and an unconfirmed secret. It also
/// succeeds without one, so a retry after a lost reply is safe.
struct EndSecondFactor: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(request)
        try await authorization.change(as: proven) { transaction in
            let removed = try await transaction.execute(RemoveSecondFactor(accountID: proven.accountID))
            guard removed.first == true else { return }
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .totpDisabled, now: proven.now))
        }
        return .noContent
    }
}
