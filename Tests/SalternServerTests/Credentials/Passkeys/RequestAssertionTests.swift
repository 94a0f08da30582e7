import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

extension TestApplication {
    /// Options of an assertion for a request.
    func assertionOptions(_ request: ProvenRequest, _ body: String, _ account: TestAccount) async throws -> JSONValue {
        let digest = Base64.encodeToString(SHA256.hash(body.utf8).bytes)
        let reply = try await account.client.post(
            "/v1/account/passkeys/options", ["purpose": .string(request.rawValue), "bodySHA256": .string(digest)])
        #expect(reply.status == 201, "\(reply)")
        return try #require(reply["publicKey"])
    }

    /// Exports an account with an assertion.
    func export(_ account: TestAccount, _ credential: JSONValue, body: String = "{}") async throws -> TestResponse {
        try await RequestAssertionTests.send(.post, "/v1/account/export", body, credential, account.client)
    }
}

/// Dangerous requests accept an assertion for exactly this request in place of the password key.
@Suite struct RequestAssertionTests {
    static func send(
        _ method: HTTPMethod, _ path: String, _ body: String, _ credential: JSONValue, _ client: TestClient
    ) async throws -> TestResponse {
        let field = Base64URL.encodeToString(TestClient.document(credential))
        return try await client.send(
            method, path, fields: [RequestAssertion.field: field], body: [UInt8](body.utf8))
    }

    @Test func `each dangerous request accepts an assertion`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.protect(app.register())
            let key = try await app.addPasskey(ada.account, logsIn: true)
            func proven(
                _ request: ProvenRequest, _ method: HTTPMethod, _ path: String, _ body: String = "{}"
            ) async throws -> TestResponse {
                let credential = try await key.get(app.assertionOptions(request, body, ada.account))
                return try await Self.send(method, path, body, credential, ada.account.client)
            }
            #expect(try await proven(.exportAccount, .post, "/v1/account/export").status == 200)
            #expect(try await proven(.renewRecoveryCodes, .post, "/v1/account/totp/recovery-codes").status == 200)
            let new = { (name: String) in
                #""passwordKey":"\#(Fixtures.passwordKey(name))","kdf":{"iterations":600000}"#
            }
            let change = "{\(new("new"))}"
            #expect(try await proven(.changeCredential, .put, "/v1/account/credential", change).status == 200)
            // The same change, after a lost reply, with another assertion.
            #expect(try await proven(.changeCredential, .put, "/v1/account/credential", change).status == 200)
            let userid = "{\"userid\":\"\(Fixtures.userid())\",\(new("newer"))}"
            #expect(try await proven(.changeUserid, .put, "/v1/account/userid", userid).status == 200)
            try await app.administer("DELETE FROM saltern.second_factors")
            #expect(try await proven(.beginTOTP, .post, "/v1/account/totp").status == 201)
            #expect(try await proven(.deleteAccount, .delete, "/v1/account").status == 204)
            #expect(try await ada.account.client.get("/v1/account").status == 401)
        }
    }

    @Test func `an assertion for another request, body, session, account or time is refused`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let factor = try await app.addPasskey(ada)
            let eve = try await app.register()
            let others = try await app.addPasskey(eve, logsIn: true)
            let opened = try await app.client.post(
                "/v1/passkeys/sessions", ["credential": key.get(app.passkeyLogInOptions())])
            let second = app.client.with(token: opened.string("session.token"))
            let options = try await app.assertionOptions(.exportAccount, "{}", ada)
            let listed = [options.member("allowCredentials"), options.member("userVerification")]
            #expect(listed == [[["type": "public-key", "id": .string(key.idText)]], "required"])
            let right = try key.get(options)
            func refused(_ reply: TestResponse, _ why: String) {
                #expect(reply.status == 403, "\(why)")
                #expect(reply.code == "wrong_passkey", "\(why)")
            }
            refused(try await app.export(ada, right, body: "{ }"), "another body")
            refused(try await Self.send(.post, "/v1/account/totp", "{}", right, ada.client), "another purpose")
            refused(try await Self.send(.delete, "/v1/account", "{}", right, ada.client), "another purpose")
            refused(try await Self.send(.post, "/v1/account/export", "{}", right, second), "another session")
            refused(try await app.export(eve, right), "another account")
            refused(try await app.export(ada, others.get(options)), "a passkey of another account")
            refused(try await app.export(ada, factor.get(options)), "a passkey that does not log in")
            refused(try await app.export(ada, key.get(app.passkeyLogInOptions())), "a challenge of a log-in")
            key.flags = 0x19
            refused(try await app.export(ada, key.get(options)), "a user who is not verified")
            key.flags = 0x1D
            #expect(app.log.lines.contains { $0.contains("user_not_verified") })
            // An assertion for a request opens no session.
            let alone = try await app.client.post("/v1/passkeys/sessions", ["credential": right])
            #expect(alone.code == "wrong_passkey")
            let late = try await key.get(app.assertionOptions(.exportAccount, "{}", ada))
            #expect(try await app.export(ada, right).status == 200)
            refused(try await app.export(ada, right), "a replay")
            app.clock.advance(by: .seconds(300))
            refused(try await app.export(ada, late), "an expired challenge")
            #expect(try await ada.client.get("/v1/account").status == 200)
            #expect(try await app.events(of: ada).filter { $0 == "exported" }.count == 1)
        }
    }

    @Test func `requests that remove factors or add passkeys accept the password key only`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let credential = try await key.get(app.assertionOptions(.exportAccount, "{}", ada))
            for (method, path) in [
                (HTTPMethod.post, "/v1/account/passkeys"), (.delete, "/v1/account/passkeys/\(key.idText)"),
                (.delete, "/v1/account/totp"), (.delete, "/v1/account/recovery"), (.post, "/v1/rotations"),
            ] {
                #expect(try await Self.send(method, path, "{}", credential, ada.client).code == "missing_member")
            }
        }
    }

    @Test func `a request has one proof, in the right form`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let path = "/v1/account/passkeys/options"
            let digest = JSONValue.string(Base64.encodeToString(SHA256.hash("{}".utf8).bytes))
            let begin: JSONValue = ["purpose": "exportAccount", "bodySHA256": digest]
            #expect(try await ada.client.post(path, begin).code == "passkey_does_not_log_in")
            let key = try await app.addPasskey(ada, logsIn: true)
            #expect(try await ada.client.post(path, begin.with("purpose", "removePasskey")).code == "invalid_purpose")
            #expect(try await ada.client.post(path, begin.with("bodySHA256", "AAAA")).code == "invalid_digest")
            let body = String(decoding: TestClient.document(ada.currentKey), as: UTF8.self)
            let credential = try await key.get(app.assertionOptions(.exportAccount, body, ada))
            #expect(try await app.export(ada, credential, body: body).code == "conflicting_members")
            #expect(try await app.export(ada, [:]).code == "malformed_credential")
            #expect(try await app.export(ada, "text").status == 422)
            #expect(try await ada.client.post("/v1/account/export", [:]).code == "missing_member")
            for field in ["", "=", "e30=", "AA"] {
                let reply = try await ada.client.send(
                    .post, "/v1/account/export", fields: [RequestAssertion.field: field], body: [UInt8]("{}".utf8))
                #expect(reply.code == "malformed_credential")
            }
        }
    }
}
