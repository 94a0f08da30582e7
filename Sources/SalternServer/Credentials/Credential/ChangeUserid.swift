internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/userid`: replaces the userid and, because the userid is part of the salt, the password key. The old
/// userid becomes free immediately. The other sessions end.
struct ChangeUserid: AccountEndpoint {
    private let kdf: KDFPolicy
    private let attempts: Attempts

    init(_ parts: Dependencies) {
        kdf = parts.configuration.kdf
        attempts = parts.attempts
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (currentKey, userid, new) = try JSONBody.read(request) { members in
            (
                try members.required("currentPasswordKey", PasswordKey.init(json:)),
                try members.required("userid", Userid.init(json:)), try NewCredential(&members, kdf)
            )
        }
        let outcome = try await authorization.replaceKey(currentKey, by: new) { transaction, proven in
            guard userid == proven.userid else {
                // A different userid requires a different key.
                guard new.verifier != proven.verifier else { throw CredentialProblem.keyUnchanged }
                return try await CredentialChange(
                    by: proven, to: new, userid: userid, event: .useridChanged, attempts
                ).apply(transaction)
            }
            guard let done = try await new.outcomeOfRetry(by: proven, transaction) else {
                throw CredentialProblem.useridUnchanged
            }
            return done
        }
        return .json { writer in
            writer.object { writer in
                writer.member("userid", userid.string)
                outcome.write(new, endsSession: false, attempts.devices, to: &writer)
            }
        }
    }
}
