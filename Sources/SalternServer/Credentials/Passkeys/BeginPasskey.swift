internal import HTTPCore
internal import Postgres
internal import WebAuthn

/// `POST /v1/account/passkeys`: returns the options with which a client creates a passkey. Stores nothing.
struct BeginPasskey: AccountEndpoint {
    private let relyingParty: RelyingParty?
    private let service: String
    private let challenges: PasskeyChallenges

    init(_ parts: Dependencies) {
        relyingParty = parts.configuration.passkeys
        service = parts.configuration.name
        challenges = PasskeyChallenges(parts.configuration.masterKey)
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let (key, logsIn) = try JSONBody.read(request) { members in
            (
                try members.required("currentPasswordKey", PasswordKey.init(json:)),
                try members.optional("logsIn") { try $0.bool() } ?? false
            )
        }
        let proven = try await authorization.prove(key)
        guard let relyingParty else { throw PasskeyProblem.off }
        let present = try await authorization.read(FindPasskeyIDs())
        guard present.count < PasskeyProblem.limit else { throw PasskeyProblem.tooMany }
        let challenge = challenges.make(for: .registration(proven.accountID, proven.tokenHash), now: proven.now)
        let options = PasskeyOptions.creation(
            challenge, relyingParty, service: service, accountID: proven.accountID, userid: proven.userid,
            logsIn: logsIn,
            excluded: present)
        return .json(.created, capacity: 1_024) { writer in
            writer.object { writer in
                writer.name("publicKey")
                writer.value(options)
            }
        }
    }
}
