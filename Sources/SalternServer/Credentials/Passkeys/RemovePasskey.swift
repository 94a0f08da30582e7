internal import HTTPCore
internal import Postgres

/// `DELETE /v1/account/passkeys/{id}`: removes a passkey, and ends the sessions that it has opened, except the
/// caller's. An absent passkey is a success too, because a retry after a lost reply finds none.
struct RemovePasskey: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: PasskeyID = try request.parameters.require("id")
        let proven = try await authorization.prove(request)
        try await authorization.change(as: proven) { transaction in
            guard try await !transaction.execute(DeletePasskey(accountID: proven.accountID, id: id)).isEmpty else {
                return
            }
            _ = try await transaction.endSessions(
                RemoveAllSessions(
                    accountID: proven.accountID, exception: proven.tokenHash, now: proven.now, passkey: id.hash))
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .passkeyRemoved, now: proven.now))
        }
        return .noContent
    }
}
