internal import HTTPCore

/// `PATCH /v1/account/passkeys/{id}`: renames a passkey.
struct RenamePasskey: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: PasskeyID = try request.parameters.require("id")
        let name = try JSONBody.read(request) { try $0.required("name", PasskeyName.init(json:)) }
        guard let passkey = try await authorization.write(RenameStoredPasskey(id: id, name: name)).first else {
            throw Problem.notFound
        }
        return .json { writer in passkey.write(to: &writer) }
    }
}
