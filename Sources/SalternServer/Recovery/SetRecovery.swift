internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/recovery`: sets or replaces the recovery key and the keyring that is sealed under it.
///
/// Setting what is set already changes nothing, so that a retry after a lost reply is safe. Replacing a key ends the
/// sessions that the old one opened.
struct SetRecovery: AccountEndpoint {
    private struct Body {
        let currentKey: PasswordKey
        let recoveryKey: PasswordKey
        let keyring: Keyring?

        init(_ request: Request) throws {
            self = try JSONBody.read(request) { try Body(&$0) }
        }

        private init(_ members: inout JSONMembers) throws {
            currentKey = try members.required("currentPasswordKey", PasswordKey.init(json:))
            recoveryKey = try members.required("recoveryKey", PasswordKey.init(json:))
            keyring = try members.optional("keyring", Keyring.init(json:))
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let body = try Body(request)
        let proven = try await authorization.prove(body.currentKey)
        let verifier = body.recoveryKey.verifier
        guard verifier != proven.verifier else { throw RecoveryProblem.keyReused }
        let write = WriteRecovery(
            accountID: proven.accountID, verifier: verifier, keyring: body.keyring, now: proven.now)
        try await authorization.change(as: proven) { transaction in
            if try await transaction.execute(write).isEmpty { return }
            _ = try await transaction.execute(
                RemoveRestrictedSessions(accountID: proven.accountID),
                RecordSecurityEvent(accountID: proven.accountID, kind: .recoverySet, now: proven.now))
        }
        return .noContent
    }
}
