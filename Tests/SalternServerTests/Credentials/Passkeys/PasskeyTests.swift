import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PasskeyTests {
    @Test func `a passkey is added with the password key, listed, renamed and removed`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register("ada")
            let options = try await app.passkeyOptions(ada)
            #expect(options.member("rp") == ["id": "example.org", "name": "Test"])
            #expect(options.member("user", "name") == "ada")
            #expect(options.member("excludeCredentials") == [])
            #expect(options.member("authenticatorSelection", "residentKey") == "preferred")
            #expect(options.member("attestation") == "none")
            let key = try await app.addPasskey(ada)
            let path = "/v1/account/passkeys"
            let listed = try #require(try await ada.client.get(path).array("passkeys"))
            #expect(listed.count == 1)
            #expect(listed[0].member("id") == .string(key.idText))
            #expect(listed[0].member("algorithm") == -8)
            #expect(listed[0].member("deviceBound") == false)
            #expect(listed[0].member("backedUp") == true)
            #expect(listed[0].member("unlocks") == false)
            #expect(listed[0].member("lastUsedAt") == nil)
            let again = try await app.passkeyOptions(ada)
            #expect(again.member("excludeCredentials") == [["type": "public-key", "id": .string(key.idText)]])

            let renamed = try await ada.client.send(
                .patch, "\(path)/\(key.idText)", body: TestClient.document(["name": "Laptop"]))
            #expect(renamed.string("name") == "Laptop")
            let wrong = TestClient.document(["currentPasswordKey": .string(Fixtures.passwordKey("wrong"))])
            #expect(try await ada.client.send(.delete, "\(path)/\(key.idText)", body: wrong).status == 403)
            for _ in 0..<2 {
                let removed = try await ada.client.send(
                    .delete, "\(path)/\(key.idText)", body: TestClient.document(ada.currentKey))
                #expect(removed.status == 204)
            }
            #expect(try await ada.client.get(path).array("passkeys") == [])
            let events = try await app.events(of: ada).filter { $0.hasPrefix("passkey") }
            #expect(events == ["passkey_added", "passkey_removed"])
        }
    }

    @Test func `where no relying party is set nothing is accepted`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            #expect(try await ada.client.post("/v1/account/passkeys", ada.currentKey).code == "passkeys_off")
            #expect(try await app.client.send(.post, "/v1/passkeys/options").code == "passkeys_off")
            #expect(try await ada.client.get("/v1/account/passkeys").array("passkeys") == [])
        }
    }

    @Test func `a passkey that logs in has to verify its user`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let options = try await app.passkeyOptions(ada, logsIn: true)
            #expect(options.member("authenticatorSelection", "userVerification") == "required")
            #expect(options.member("authenticatorSelection", "requireResidentKey") == true)
            let key = SoftwareAuthenticator()
            key.flags = 0x01
            let refused = try await app.confirm(key.create(options), ada, logsIn: true)
            #expect(refused.code == "passkey_refused")
            #expect(refused.string("reason") == "user_not_verified")
            #expect(try await app.confirm(key.create(options), ada).status == 201)
        }
    }

    @Test func `a challenge is good for one registration by its session`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let eve = try await app.register()
            let options = try await app.passkeyOptions(ada)
            let foreign = try await app.confirm(SoftwareAuthenticator().create(options), eve)
            #expect(foreign.string("reason") == "wrong_challenge")
            #expect(try await app.confirm(SoftwareAuthenticator().create(options), ada).status == 201)
            let again = try await app.confirm(SoftwareAuthenticator().create(options), ada)
            #expect(again.string("reason") == "wrong_challenge")
            let late = try await app.passkeyOptions(ada)
            app.clock.advance(by: .seconds(300))
            #expect(
                try await app.confirm(SoftwareAuthenticator().create(late), ada).string("reason") == "wrong_challenge")
            // A challenge of another ceremony.
            let login = try await app.passkeyLogInOptions().with("user", ["id": "AAAA"])
            #expect(
                try await app.confirm(SoftwareAuthenticator().create(login), ada).string("reason") == "wrong_challenge")
        }
    }

    @Test func `a confirmation whose reply was lost can be repeated`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = SoftwareAuthenticator()
            let credential = try await key.create(app.passkeyOptions(ada))
            let first = try await app.confirm(credential, ada)
            let again = try await app.confirm(credential, ada)
            #expect(first.status == 201 && again.status == 201)
            #expect(first["id"] == again["id"] && again.string("id") == key.idText)
            #expect(first["createdAt"] == again["createdAt"])
            #expect(try await app.confirm(credential, ada, logsIn: true).string("reason") == "wrong_challenge")
            #expect(try await app.events(of: ada).filter { $0 == "passkey_added" }.count == 1)
            // The passkey must still be there, and have the same key.
            let options = try await app.passkeyOptions(ada)
            let other = SoftwareAuthenticator()
            #expect(try await app.confirm(other.create(options), ada).status == 201)
            let forged = SoftwareAuthenticator(id: other.id)
            #expect(try await app.confirm(forged.create(options), ada).string("reason") == "wrong_challenge")
            _ = try await ada.client.send(
                .delete, "/v1/account/passkeys/\(key.idText)", body: TestClient.document(ada.currentKey))
            #expect(try await app.confirm(credential, ada).string("reason") == "wrong_challenge")
        }
    }

    @Test func `an output of PRF is refused and not stored`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let credential = try await SoftwareAuthenticator().create(app.passkeyOptions(ada))
            let output: JSONValue = ["prf": ["enabled": true, "results": ["first": "c2VjcmV0LW91dHB1dA"]]]
            let refused = try await app.confirm(credential.with("clientExtensionResults", output), ada)
            #expect(refused.status == 422)
            #expect(refused.code == "prf_output_refused")
            #expect(!app.log.lines.contains { $0.contains("c2VjcmV0LW91dHB1dA") })
            let enabled: JSONValue = ["prf": ["enabled": true]]
            #expect(try await app.confirm(credential.with("clientExtensionResults", enabled), ada).status == 201)
        }
    }

    /// As in all members; see ``Base64Text``.
    @Test func `base64url may be surrounded by white space, and is canonical`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            // An id whose base64url contains both letters that differ from base64, and ends with unused bits.
            let key = SoftwareAuthenticator(id: [0xFB, 0xFF, 0xBF, 0xF0])
            #expect(key.idText == "-_-_8A")
            let credential = try await key.create(app.passkeyOptions(ada))
            let response = try #require(credential.member("response"))
            for text in ["+/+/8A", "-_-_8A==", "-_-_8B", "-_-_ 8A", "-_-_8", "\u{a0}-_-_8A"] {
                let changed = credential.with("id", .string(JSONString(text))).with("rawId", .string(JSONString(text)))
                #expect(try await app.confirm(changed, ada).code == "malformed_credential", "\(text)")
            }
            let data = try #require(response.member("clientDataJSON")).string()
            let padded = credential.with("response", response.with("clientDataJSON", .string(JSONString(data + "="))))
            #expect(try await app.confirm(padded, ada).code == "malformed_credential")
            let spaced = credential.with("id", " -_-_8A\n").with("rawId", "-_-_8A\t")
                .with("response", response.with("clientDataJSON", .string(JSONString(" \(data)\r\n"))))
            #expect(try await app.confirm(spaced, ada).string("id") == "-_-_8A")
            #expect(try await ada.client.get("/v1/account/passkeys").array("passkeys")?.count == 1)
        }
    }

    @Test func `malformed credentials are refused`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let credential = try await SoftwareAuthenticator().create(app.passkeyOptions(ada))
            let response = try #require(credential.member("response"))
            let malformed: [JSONValue] = [
                credential.with("type", "password"), credential.with("id", "="), credential.with("id", ""),
                credential.with("rawId", "AAAA"), credential.with("response", .null),
                credential.with("response", response.with("attestationObject", "***")),
                credential.with("response", response.with("attestationObject", .null)),
                credential.with("response", response.with("clientDataJSON", 1)),
                credential.with("response", response.with("publicKeyAlgorithm", "-8")),
            ]
            for credential in malformed {
                #expect(try await app.confirm(credential, ada).code == "malformed_credential")
            }
            for name in ["", "\u{7}", String(repeating: "a", count: 65)] {
                #expect(try await app.confirm(credential, ada, name: name).code == "invalid_passkey_name")
            }
            let other = credential.with("response", response.with("publicKeyAlgorithm", -7))
            #expect(try await app.confirm(other, ada).string("reason") == "wrong_algorithm")
            #expect(try await app.confirm(credential, ada).status == 201)
        }
    }

    @Test func `an account has twenty passkeys at most, each once`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let first = try await app.addPasskey(ada)
            let twice = try await app.confirm(first.create(app.passkeyOptions(ada)), ada)
            #expect(twice.code == "passkey_exists")
            for _ in 2..<PasskeyProblem.limit { try await app.addPasskey(ada) }
            let last = try await app.passkeyOptions(ada)
            try await app.addPasskey(ada)
            #expect(try await app.confirm(SoftwareAuthenticator().create(last), ada).code == "too_many_passkeys")
            #expect(try await ada.client.post("/v1/account/passkeys", ada.currentKey).code == "too_many_passkeys")
            #expect(try await ada.client.get("/v1/account/passkeys").array("passkeys")?.count == 20)
        }
    }

    @Test func `used challenges are purged when they have expired`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            try await app.addPasskey(app.register())
            func purge() async throws -> Int? {
                try await app.run { [postgres = app.postgres, now = app.clock.now] in
                    try await Purge(
                        database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now
                    ).run()?.challenges
                }
            }
            #expect(try await purge() == 0)
            app.clock.advance(by: .seconds(301))
            #expect(try await purge() == 1)
        }
    }
}
