internal import HTTPCore
internal import Postgres

/// `DELETE /v1/account/recovery`: the recovery key opens nothing any more, and what it has opened ends.
struct RemoveRecovery: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let key = try JSONBody.read(request) { try $0.required("currentPasswordKey", PasswordKey.init(json:)) }
        let proven = try await authorization.prove(key)
        try await authorization.change(as: proven) { transaction in
            let removed = try await transaction.execute(DeleteRecovery(accountID: proven.accountID))
            if removed.isEmpty { throw Problem.notFound }
            _ = try await transaction.execute(
                RemoveRestrictedSessions(accountID: proven.accountID),
                RecordSecurityEvent(accountID: proven.accountID, kind: .recoveryRemoved, now: proven.now))
        }
        return .noContent
    }
}
