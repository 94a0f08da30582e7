internal import HTTPCore

/// `GET /v1/account/keyring`: returns the caller's keyring, 304 if the client has this revision, or 412 if the
/// precondition names another one.
struct ShowKeyring: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        guard let found = try await authorization.read(FindKeyring()).first, let keyring = found.keyring else {
            throw Problem.notFound
        }
        let fields: HTTPFields = ["ETag": EntityTag.text(of: found.revision)]
        switch ReadCondition(request.head.fields, revision: found.revision) {
        case .met: break
        case .failed: throw KeyringProblem.preconditionFailed(current: keyring, revision: found.revision)
        case .notModified: return Response(status: .notModified, fields: fields)
        }
        return .json(fields: fields, capacity: 64 + keyring.count * 4 / 3) { writer in
            writer.object { writer in
                writer.member("keyring", base64: keyring)
                writer.member("revision", found.revision)
            }
        }
    }
}
