internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/userid`: replaces the userid and, because the userid is part of the salt, the password key. The old
/// userid becomes free immediately. The other sessions end.
struct ChangeUserid: AccountEndpoint {
    private let kdf: KDFPolicy
    private let attempts: Attempts
    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        kdf = parts.configuration.kdf
        proofs = ProofReader(parts, for: .changeUserid)
        attempts = parts.attempts
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (proof, (userid, new)) = try proofs.read(request) { members in
            (try members.required("userid", Userid.init(json:)), try NewCredential(&members, kdf))
        }
        guard let proof else { throw CurrentKeyMissing() }
        let outcome = try await authorization.replaceKey(proof, by: new) { transaction, proven in
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
