internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/userid`: another userid, and because the userid is salt, another password key. The old userid is
/// free at once. The other sessions end.
struct ChangeUserid: AccountEndpoint {
    private let kdf: KDFPolicy
    private let attempts: Attempts

    init(_ parts: Dependencies) {
        kdf = parts.configuration.kdf
        attempts = parts.attempts
    }

    private struct Body {
        let currentKey: PasswordKey
        let userid: Userid
        let new: NewCredential

        init(_ request: Request, _ kdf: KDFPolicy) throws {
            self = try JSONBody.read(request) { try Body(&$0, kdf) }
        }

        private init(_ members: inout JSONMembers, _ kdf: KDFPolicy) throws {
            currentKey = try members.required("currentPasswordKey", PasswordKey.init(json:))
            userid = try members.required("userid", Userid.init(json:))
            new = try NewCredential(&members, kdf)
        }
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let body = try Body(request, kdf)
        let outcome = try await authorization.replaceKey(body.currentKey, by: body.new) { transaction, proven in
            guard body.userid == proven.userid else {
                // The key of another userid is another one.
                guard body.new.verifier != proven.verifier else { throw CredentialProblem.keyUnchanged }
                return try await CredentialChange(
                    by: proven, to: body.new, userid: body.userid, event: .useridChanged, attempts
                ).apply(transaction)
            }
            guard let done = try await body.new.outcomeOfRetry(by: proven, transaction) else {
                throw CredentialProblem.useridUnchanged
            }
            return done
        }
        return .json { writer in
            writer.object { writer in
                writer.member("userid", body.userid.string)
                outcome.write(body.new, endsSession: false, attempts.devices, to: &writer)
            }
        }
    }
}
