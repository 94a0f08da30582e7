internal import HTTPCore
internal import Postgres

/// `POST /v1/rotations/{id}/commit`: swaps every item, the credential and the keyring in one transaction, or changes
/// nothing. The other sessions end.
///
/// A commit that has happened answers as it did then when it is sent again with the same new key.
struct CommitRotation: AccountEndpoint {
    private let kdf: KDFPolicy

    init(_ parts: Dependencies) {
        kdf = parts.configuration.kdf
    }

    private struct Body {
        let currentKey: PasswordKey
        let new: NewCredential

        init(_ request: Request, _ kdf: KDFPolicy) throws {
            self = try JSONBody.read(request) { try Body(&$0, kdf) }
        }

        private init(_ members: inout JSONMembers, _ kdf: KDFPolicy) throws {
            currentKey = try members.required("currentPasswordKey", PasswordKey.init(json:))
            new = try NewCredential(&members, kdf)
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        let body = try Body(request, kdf)
        let outcome: RotationCommit.Outcome
        do {
            outcome = try await Self.commit(id, body, authorization)
        } catch is CredentialMoved {
            // Perhaps by this very commit, which was sent twice: then the new key is the present one now.
            outcome = try await Self.commit(id, body, authorization)
        }
        return .json { writer in
            writer.object { writer in
                writer.member("items", outcome.items)
                writer.member("dropped", outcome.dropped)
                writer.member("revision", outcome.revision)
                outcome.credential.write(body.new, endsSession: false, to: &writer)
            }
        }
    }

    private static func commit(
        _ id: RotationID, _ body: Body, _ authorization: Authorization
    ) async throws -> RotationCommit.Outcome {
        let proven = try await authorization.prove(body.currentKey, replacement: body.new.verifier)
        do {
            return try await authorization.change(as: proven) { transaction in
                try await RotationCommit(id: id, by: proven, to: body.new).apply(transaction)
            }
        } catch is WrongCurrentKey {
            throw CredentialMoved()
        }
    }
}

/// The key was right, and the credential changed before the account was locked.
private struct CredentialMoved: ProblemConvertible {
    var problem: Problem { WrongCurrentKey().problem }
}
