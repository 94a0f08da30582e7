internal import HTTPCore
internal import Postgres

/// `POST /v1/account/totp`: creates the secret of one-time passwords and returns it once. The second factor takes
/// effect when a code confirms it. Until then another call creates another secret.
struct BeginSecondFactor: AccountEndpoint {
    private let masterKey: MasterKey
    private let issuer: String
    private let proofs: ProofReader

    init(_ parts: Dependencies) {
        proofs = ProofReader(parts, for: .beginTOTP)
        masterKey = parts.configuration.masterKey
        issuer = parts.configuration.name
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let proven = try await authorization.prove(proofs.read(request))
        let passwords = OneTimePasswords.random()
        let sealed = try masterKey.seal(passwords.secret, for: .oneTimePasswords(of: proven.accountID))
        try await authorization.change(as: proven) { transaction in
            let enrolled = try await transaction.execute(
                EnrolSecondFactor(accountID: proven.accountID, sealedSecret: sealed, now: proven.now))
            guard !enrolled.isEmpty else { throw SecondFactorProblem.isEnabled }
        }
        return .json(.created) { writer in
            writer.object { writer in
                passwords.write(issuer: issuer, userid: proven.userid, to: &writer)
            }
        }
    }
}
