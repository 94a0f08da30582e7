internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/passkeys/{id}/box`: stores the sealed values by which a passkey unlocks the keyring. The client
/// needs the passkey's PRF output to seal them.
struct PutPasskeyBox: AccountEndpoint {
    private struct Body {
        let currentKey: PasswordKey
        let unlockKey: PasskeyBox
        let box: PasskeyBox

        init(_ members: inout JSONMembers) throws {
            currentKey = try members.required("currentPasswordKey", PasswordKey.init(json:))
            unlockKey = try members.required("unlockKey", PasskeyBox.init(json:))
            box = try members.required("box", PasskeyBox.init(json:))
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: PasskeyID = try request.parameters.require("id")
        let body = try JSONBody.read(request) { try Body(&$0) }
        let proven = try await authorization.prove(body.currentKey)
        try await authorization.change(as: proven) { transaction in
            let store = StoreUnlockBox(accountID: proven.accountID, id: id, key: body.unlockKey, box: body.box)
            guard let logsIn = try await transaction.execute(store).first else { throw Problem.notFound }
            guard logsIn else { throw PasskeyProblem.doesNotLogIn }
            try await transaction.note(
                RecordSecurityEvent(accountID: proven.accountID, kind: .passkeyUnlockSet, now: proven.now))
        }
        return .noContent
    }
}
