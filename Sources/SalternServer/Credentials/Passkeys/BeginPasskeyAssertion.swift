internal import Cryptography
internal import HTTPCore
internal import Postgres

/// `POST /v1/account/passkeys/options`: returns a challenge for one request, whose body the client has already written.
/// The assertion then replaces the password key in that request. Stores nothing.
struct BeginPasskeyAssertion: AccountEndpoint {
    private let verifier: PasskeyVerifier

    init(_ parts: Dependencies) {
        verifier = PasskeyVerifier(parts.configuration)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (purpose, bodyHash) = try JSONBody.read(request) { members in
            (
                try members.required("purpose", ProvenRequest.init(json:)),
                try members.required("bodySHA256", Self.digest(json:))
            )
        }
        let passkeys = try await authorization.read(FindPasskeys())
        guard let relyingParty = verifier.relyingParty else { throw PasskeyProblem.off }
        let allowed = passkeys.filter(\.logsIn).map(\.id)
        guard !allowed.isEmpty else { throw PasskeyProblem.noneLogsIn }
        let challenge = verifier.challenges.make(
            for: .request(authorization.accountID, authorization.tokenHash, purpose, bodyHash), now: authorization.now)
        return .json(.created, capacity: 1_024) { writer in
            writer.object { writer in
                writer.name("publicKey")
                writer.value(PasskeyOptions.request(challenge, relyingParty, allowed: allowed, verifiesUser: true))
            }
        }
    }

    private static func digest(json: JSONValue) throws -> SHA256Digest {
        guard let bytes = try Base64Text.decode(json.text()), let digest = SHA256Digest(bytes) else {
            throw Problem(
                .unprocessableContent, "invalid_digest",
                detail: "`bodySHA256` must be base64 of the 32 bytes of SHA-256 of the request's body.")
        }
        return digest
    }
}
