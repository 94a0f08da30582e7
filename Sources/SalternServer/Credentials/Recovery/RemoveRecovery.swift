internal import HTTPCore
internal import Postgres

/// `DELETE /v1/account/recovery`: removes the recovery key and ends the sessions that it opened.
struct RemoveRecovery: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(request)
        try await authorization.change(as: proven) { transaction in
            let removed = try await transaction.execute(DeleteRecovery(accountID: proven.accountID))
            if removed.isEmpty { throw Problem.notFound }
            let event = RecordSecurityEvent(accountID: proven.accountID, kind: .recoveryRemoved, now: proven.now)
            _ = try await transaction.execute(
                RemoveKeptRecoveryKeyrings(accountID: proven.accountID),
                RemoveRestrictedSessions(accountID: proven.accountID), event, DropOldEvents(after: event))
        }
        return .noContent
    }
}
