internal import HTTPCore
internal import Postgres

/// `POST /v1/rotations/{id}/commit`: replaces all items, the credential and the keyring in one transaction, or changes
/// nothing. The other sessions end.
///
/// A repeated commit with the same new key returns the same result.
struct CommitRotation: AccountEndpoint {
    private let kdf: KDFPolicy
    private let attempts: Attempts

    init(_ parts: Dependencies) {
        kdf = parts.configuration.kdf
        attempts = parts.attempts
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let id: RotationID = try request.parameters.require("id")
        let (currentKey, new) = try JSONBody.read(request) { members in
            (try members.required("currentPasswordKey", PasswordKey.init(json:)), try NewCredential(&members, kdf))
        }
        let outcome = try await authorization.replaceKey(
            .passwordKey(currentKey), by: new, use: authorization.longUse
        ) { transaction, proven in
            try await RotationCommit(id: id, by: proven, to: new, attempts).apply(transaction)
        }
        return .json { writer in
            writer.object { writer in
                writer.member("items", outcome.items)
                writer.member("dropped", outcome.dropped)
                writer.member("revision", outcome.revision)
                outcome.credential.write(new, endsSession: false, attempts.devices, to: &writer)
            }
        }
    }
}
