import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SecondFactorTests {
    @Test func `a secret is shown once, confirmed with its code, and answered with ten recovery codes`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada@example.org")
            #expect(try await ada.client.get("/v1/account")["secondFactor"] == ["totp": false, "recoveryCodesLeft": 0])
            let begun = try await ada.client.post("/v1/account/totp", ada.currentKey)
            #expect(begun.status == 201)
            let secret = try #require(begun.string("secret"))
            #expect(secret.count == 32)
            #expect(
                begun.string("uri")
                    == "otpauth://totp/Test:ada%40example.org?secret=\(secret)&issuer=Test&algorithm=SHA1&digits=6&period=30"
            )
            // It does not count yet.
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 201)
            #expect(try await ada.client.get("/v1/account").bool("secondFactor.totp") == false)

            let phone = try Authenticator(secret: secret, clock: app.clock)
            let wrong = try await ada.client.post("/v1/account/totp/confirm", ["totp": .string(phone.code(5))])
            #expect(wrong.status == 403)
            #expect(wrong.code == "wrong_totp")
            let confirmed = try await ada.client.post("/v1/account/totp/confirm", ["totp": .string(phone.code())])
            #expect(confirmed.status == 200)
            let codes = try #require(confirmed.array("recoveryCodes")).map { try $0.string() }
            #expect(Set(codes).count == 10)
            #expect(codes.allSatisfy { $0.wholeMatch(of: /([A-Z2-7]{4}-){4}[A-Z2-7]{4}/) != nil })
            #expect(try await ada.client.get("/v1/account")["secondFactor"] == ["totp": true, "recoveryCodesLeft": 10])
            #expect(Set(try await app.events(of: ada)) == ["failed_confirmations", "totp_enabled"])
        }
    }

    @Test func `until it is confirmed another secret takes its place`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let first = try await app.beginSecondFactor(ada)
            app.clock.advance(by: .seconds(1))
            let second = try await app.beginSecondFactor(ada)
            let path = "/v1/account/totp/confirm"
            #expect(try await ada.client.post(path, ["totp": .string(first.code())]).status == 403)
            #expect(try await ada.client.post(path, ["totp": .string(second.code())]).status == 200)
        }
    }

    @Test func `a confirmed one is not replaced, and neither confirmed twice nor out of nothing`() async throws {
        try await TestApplication.with { app in
            let bob = try await app.register()
            let nothing = try await bob.client.post("/v1/account/totp/confirm", ["totp": "123456"])
            #expect(nothing.status == 409)
            #expect(nothing.code == "totp_not_pending")
            let ada = try await app.protect(app.register())
            let again = try await ada.client.post("/v1/account/totp", ada.account.currentKey)
            #expect(again.status == 409)
            #expect(again.code == "totp_enabled")
            let code = JSONValue.string(ada.authenticator.code())
            let confirmed = try await ada.client.post("/v1/account/totp/confirm", ["totp": code])
            #expect(confirmed.status == 409)
            #expect(confirmed.code == "totp_enabled")
        }
    }

    @Test func `it is removed with the password key, with its codes, and can be set up anew`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let wrong = TestClient.document(["currentPasswordKey": .string(Fixtures.passwordKey("wrong"))])
            #expect(try await ada.client.send(.delete, "/v1/account/totp", body: wrong).status == 403)
            #expect(try await app.logIn(ada, nil).code == "totp_required")

            #expect(try await ada.account.deleteSecondFactor().status == 204)
            #expect(try await app.logIn(ada, nil).status == 201)
            #expect(try await ada.client.get("/v1/account")["secondFactor"] == ["totp": false, "recoveryCodesLeft": 0])
            func events() async throws -> [String] {
                try await app.events(of: ada.account).filter { $0.hasPrefix("totp") }
            }
            #expect(try await events() == ["totp_enabled", "totp_disabled"])
            // A retry after a lost reply.
            #expect(try await ada.account.deleteSecondFactor().status == 204)
            #expect(try await events().count == 2)

            let anew = try await app.protect(ada.account)
            #expect(try await app.logIn(anew, ada.recoveryCodes[0]).code == "wrong_totp")
            #expect(try await app.logIn(anew, ada.authenticator.code()).code == "wrong_totp")
            #expect(try await app.logIn(anew, anew.authenticator.code()).status == 201)
        }
    }

    @Test func `a secret that waits is removed without an event`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let phone = try await app.beginSecondFactor(ada)
            #expect(try await ada.deleteSecondFactor().status == 204)
            let late = try await ada.client.post("/v1/account/totp/confirm", ["totp": .string(phone.code())])
            #expect(late.code == "totp_not_pending")
            #expect(try await app.events(of: ada).isEmpty)
        }
    }

    @Test func `recovery codes are renewed as a set`() async throws {
        try await TestApplication.with { app in
            let path = "/v1/account/totp/recovery-codes"
            let bob = try await app.register()
            let none = try await bob.client.post(path, bob.currentKey)
            #expect(none.status == 409)
            #expect(none.code == "totp_not_enabled")
            #expect(try await app.events(of: bob).isEmpty)

            let ada = try await app.protect(app.register())
            #expect(try await app.logIn(ada, ada.recoveryCodes[0]).status == 201)
            let renewed = try await ada.client.post(path, ada.account.currentKey)
            #expect(renewed.status == 200)
            let codes = try #require(renewed.array("recoveryCodes")).map { try $0.string() }
            #expect(codes.count == 10)
            #expect(try await ada.client.get("/v1/account").integer("secondFactor.recoveryCodesLeft") == 10)
            #expect(try await app.logIn(ada, ada.recoveryCodes[1]).code == "wrong_totp")
            #expect(try await app.logIn(ada, codes[0]).status == 201)
            #expect(try await app.events(of: ada.account).contains("totp_codes_renewed"))
        }
    }

    @Test func `bad input is refused with its code and field`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for (method, path) in [
                (HTTPMethod.post, "/v1/account/totp"), (.delete, "/v1/account/totp"),
                (.post, "/v1/account/totp/recovery-codes"),
            ] {
                let wrong = TestClient.document(["currentPasswordKey": .string(Fixtures.passwordKey("x"))])
                let refused = try await ada.client.send(method, path, body: wrong)
                #expect(refused.status == 403)
                #expect(refused.code == "wrong_credentials")
                let missing = try await ada.client.send(method, path, body: TestClient.document([:]))
                #expect(missing.status == 422)
                #expect(missing.string("field") == "currentPasswordKey")
                let stranger = try await app.client.send(method, path, body: wrong)
                #expect(stranger.status == 401)
            }
            for (value, code) in [("12345", "malformed_totp"), ("", "malformed_totp")] as [(JSONValue, String)] {
                let refused = try await ada.client.post("/v1/account/totp/confirm", ["totp": value])
                #expect(refused.status == 422)
                #expect(refused.code == code)
                #expect(refused.string("field") == "totp")
            }
            let number = try await ada.client.post("/v1/account/totp/confirm", ["totp": 123456])
            #expect(number.code == "wrong_type")
            let login = try await app.client.post(
                "/v1/sessions",
                ["userid": "nobody", "passwordKey": .string(ada.passwordKey), "totp": "12"])
            #expect(login.code == "malformed_totp")
        }
    }
}
