internal import HTTPCore
internal import Postgres

/// `DELETE /v1/account/totp`: log-ins need no code any more. Recovery codes go with it, and so does a secret that waits
/// for its first code. When there is nothing, that is a success too: a retry after a lost reply finds it so.
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
