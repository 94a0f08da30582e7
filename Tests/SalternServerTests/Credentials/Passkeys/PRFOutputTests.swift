import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// Outputs of PRF are refused in each request that carries the response of an authenticator, and are in no log.
@Suite struct PRFOutputTests {
    private static let output = "c2VjcmV0LW91dHB1dA"

    /// Places in which clients and libraries put an output.
    private static let outputs: [JSONValue] = [
        ["prf": ["results": ["first": .string(output)]]],
        ["prf": ["enabled": true, "results": ["first": "AA", "second": .string(output)]]],
        ["prf": ["results": [:], "first": .string(output)]], ["prf": ["second": .string(output)]],
        ["prf": ["results": .string(output)]], ["prf": .string(output)], ["prf": [.string(output)]],
        ["results": ["first": .string(output)]], ["hmacGetSecret": ["output1": .string(output)]],
        ["hmacGetSecret": ["output1": .null, "output2": .string(output)]], ["hmac-secret": .string(output)],
    ]

    private static let harmless: [JSONValue] = [
        [:], ["prf": [:]], ["prf": ["enabled": true]], ["prf": ["results": .null]], ["hmacCreateSecret": true],
        ["prf": ["eval": ["first": "c2FsdA"]]], ["credProps": ["rk": true]], ["results": "a"],
    ]

    /// Credentials with `extensions` in all places at which they can stand.
    private static func credentials(_ credential: JSONValue, _ extensions: JSONValue) -> [JSONValue] {
        let response = credential.member("response") ?? [:]
        return [
            credential.with("clientExtensionResults", extensions),
            credential.with("response", response.with("clientExtensionResults", extensions)),
            credential.with("extensions", extensions), credential.with("more", [["deep": [extensions]]]),
        ]
    }

    @Test func `an output is refused at any depth of each request`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let created = try await SoftwareAuthenticator().create(app.passkeyOptions(ada))
            let second = try key.get(#require(try await app.tryLogIn(ada)["publicKey"]))
            let alone = try await key.get(app.passkeyLogInOptions())
            let asserted = try await key.get(app.assertionOptions(.exportAccount, "{}", ada))
            func refused(_ reply: TestResponse) {
                #expect(reply.status == 422)
                #expect(reply.code == "prf_output_refused")
            }
            for output in Self.outputs {
                for credential in Self.credentials(created, output) { refused(try await app.confirm(credential, ada)) }
                for credential in Self.credentials(second, output) {
                    refused(try await app.tryLogIn(ada, passkey: credential))
                }
                for credential in Self.credentials(alone, output) {
                    refused(try await app.client.post("/v1/passkeys/sessions", ["credential": credential]))
                }
                for credential in Self.credentials(asserted, output) {
                    refused(try await app.export(ada, credential))
                }
                // Beside the credential.
                let beside: JSONValue = ["credential": alone, "clientExtensionResults": output]
                refused(try await app.client.post("/v1/passkeys/sessions", beside))
                refused(
                    try await ada.client.post(
                        "/v1/account/passkeys/confirm", ada.currentKey.with("clientExtensionResults", output)))
            }
            #expect(!app.log.lines.contains { $0.contains(Self.output) })
            for harmless in Self.harmless {
                for credential in Self.credentials(created, harmless) {
                    #expect(try await app.confirm(credential, ada).status == 201)
                }
            }
        }
    }
}
