internal import Cryptography
internal import HTTPCore

/// `PUT /v1/account/keyring`: creates or replaces the caller's sealed data keys.
struct PutKeyring: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let precondition = try Precondition(request.head.fields, allowsAbsent: true)
        let keyring = try JSONBody.read(request) { try $0.required("keyring", Keyring.init(json:)) }
        let written = try await authorization.write(WriteKeyring(precondition: precondition, keyring: keyring))
        guard let written = written.first else { throw Unauthenticated() }
        if written.outcome == .preconditionFailed {
            throw KeyringProblem.preconditionFailed(current: written.current, revision: written.revision)
        }
        let fields: HTTPFields = ["ETag": EntityTag.text(of: written.revision)]
        return .json(written.outcome == .created ? .created : .ok, fields: fields) { writer in
            writer.object { writer in writer.member("revision", written.revision) }
        }
    }
}

/// Why the keyring was not changed.
enum KeyringProblem: ProblemConvertible {
    /// The precondition does not hold; what is there now, if anything.
    case preconditionFailed(current: [UInt8]?, revision: Int64)

    var problem: Problem {
        switch self {
        case .preconditionFailed(let current, let revision):
            var problem = Problem(
                .preconditionFailed, "precondition_failed", detail: "The keyring is not what the precondition says.")
            guard let current else {
                problem.members = [(name: "current", value: .null)]
                return problem
            }
            let keyring = JSONValue.string(JSONString(ascii: Base64.encode(current)))
            problem.members = [
                (name: "current", value: ["keyring": keyring, "revision": .integer(revision)])
            ]
            problem.responseFields = ["ETag": EntityTag.text(of: revision)]
            return problem
        }
    }
}
