internal import HTTPCore
internal import Postgres

/// `POST /v1/passkeys/options`: returns a challenge for a log-in without password. It names no passkeys, so it
/// discloses nothing about userids. Reads and stores nothing.
struct BeginPasskeyLogIn: OpenEndpoint {
    private let verifier: PasskeyVerifier
    private let clock: any WallClock

    init(_ parts: Dependencies) {
        verifier = PasskeyVerifier(parts.configuration)
        clock = parts.clock
    }

    func respond(to request: Request) async throws -> Response {
        guard let relyingParty = verifier.relyingParty else { throw PasskeyProblem.off }
        let challenge = verifier.challenges.make(for: .logIn, now: clock.now)
        return .json(.created) { writer in
            writer.object { writer in
                writer.name("publicKey")
                writer.value(PasskeyOptions.request(challenge, relyingParty, allowed: [], verifiesUser: true))
            }
        }
    }
}
