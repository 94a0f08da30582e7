import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SecondFactorLogInTests {
    @Test func `a code is asked for only after the right key`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register("ada"))
            let required = try await app.logIn(ada, nil)
            #expect(required.status == 401)
            #expect(required.code == "totp_required")
            #expect(required.string("session.token") == nil)
            for code in [nil, ada.authenticator.code(), ada.recoveryCodes[0]] {
                var members: [(name: String, value: JSONValue)] = [
                    (name: "userid", value: "ada"), (name: "passwordKey", value: .string(Fixtures.passwordKey("x"))),
                ]
                if let code { members.append((name: "totp", value: .string(code))) }
                let wrong = try await app.client.post("/v1/sessions", .object(JSONObject(members)))
                #expect(wrong.status == 401)
                #expect(wrong.code == "wrong_credentials")
            }
            // Nothing was used up by it.
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
            #expect(try await app.logIn(ada, ada.recoveryCodes[0]).status == 201)
        }
    }

    @Test func `each code opens one session, also that of a neighbouring step`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            app.clock.advance(by: .seconds(60))
            let early = ada.authenticator.code(-1)
            let now = ada.authenticator.code()
            let late = ada.authenticator.code(1)
            for code in [early, now, late] {
                #expect(try await app.logIn(ada, code).status == 201)
                let again = try await app.logIn(ada, code)
                #expect(again.status == 401)
                #expect(again.code == "wrong_totp")
            }
            #expect(try await app.logIn(ada, ada.authenticator.code(2)).code == "wrong_totp")
            app.clock.advance(by: .seconds(60))
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
        }
    }

    @Test func `the code that confirmed the secret is used up`() async throws {
        try await TestApplication.with { app in
            let account = try await app.register()
            let phone = try await app.beginSecondFactor(account)
            let code = phone.code()
            _ = try await account.client.post("/v1/account/totp/confirm", ["totp": .string(code)])
            let login = try await app.client.post(
                "/v1/sessions",
                [
                    "userid": .string(account.userid), "passwordKey": .string(account.passwordKey),
                    "totp": .string(code),
                ])
            #expect(login.code == "wrong_totp")
        }
    }

    @Test func `each recovery code opens one session and leaves an event`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let other = try await app.protect(app.register())
            #expect(try await app.logIn(ada, other.recoveryCodes[0]).code == "wrong_totp")
            for code in ada.recoveryCodes {
                #expect(try await app.logIn(ada, code.lowercased().replacing("-", with: " ")).status == 201)
                #expect(try await app.logIn(ada, code).code == "wrong_totp")
            }
            #expect(try await ada.client.get("/v1/account").integer("secondFactor.recoveryCodesLeft") == 0)
            #expect(try await app.events(of: ada.account).count { $0 == "totp_code_used" } == 10)
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
        }
    }

    @Test func `wrong codes are told while they go on and after, a missing one is not`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            _ = try await app.logIn(ada, nil)
            #expect(try await app.events(of: ada.account) == ["totp_enabled"])
            _ = try await app.logIn(ada, ada.authenticator.code(9))
            _ = try await app.logIn(ada, "AAAA-AAAA-AAAA-AAAA-AAAA")
            // No event a failure: it would take the account's lock, and tell that there is an account.
            #expect(try await app.events(of: ada.account) == ["totp_enabled"])
            func entry() async throws -> TestResponse { try await ada.client.get("/v1/account/events?limit=1") }
            let during = try await entry()
            #expect(during.string("events.0.kind") == "second_factor_failed")
            #expect(during.integer("events.0.count") == 2)
            #expect(during.bool("events.0.ongoing") == true)
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
            #expect(try await app.events(of: ada.account) == ["totp_enabled", "second_factor_failed"])
        }
    }

    @Test func `wrong codes are counted with the other failures of the userid, and delay the next attempt`()
        async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            for _ in 1...5 { #expect(try await app.logIn(ada, "000000").code == "wrong_totp") }
            let delayed = try await app.logIn(ada, ada.authenticator.code())
            #expect(delayed.status == 429)
            #expect(delayed.code == "too_many_attempts")
            app.clock.advance(by: .seconds(2))
            // Being asked for a code neither counts nor forgets.
            #expect(try await app.logIn(ada, nil).code == "totp_required")
            #expect(try await app.logIn(ada, "000000").code == "wrong_totp")
            #expect(try await app.logIn(ada, nil).status == 429)
            app.clock.advance(by: .seconds(60))
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
            #expect(try await app.events(of: ada.account).contains("second_factor_failed"))
        }
    }

    @Test func `an account without a second factor takes two round trips`() async throws {
        try await TestApplication.with(connections: 1) { app in
            let bob = try await app.register()
            let ada = try await app.protect(app.register())
            // The first log-ins on a node count the sessions.
            _ = try await app.logIn(bob)
            #expect(try await app.logIn(ada, ada.recoveryCodes[0]).status == 201)
            func executed(by logIn: () async throws -> TestResponse) async throws -> [String: Int64] {
                let before = try await app.executions()
                let reply = try await logIn()
                #expect(reply.status == 201)
                return try await app.executions().difference(from: before)
            }
            let plain = try await executed {
                // A code that nobody asked for changes nothing.
                let body: JSONValue = [
                    "userid": .string(bob.userid), "passwordKey": .string(bob.passwordKey), "totp": "123456",
                ]
                return try await app.client.post("/v1/sessions", body)
            }
            let expected: [String: Int64] = [
                "FindLogin": 1, "FindFailedAttempts": 1, "OpenSession": 1, "StoreSession": 1, "HoldFailedAttempts": 1,
            ]
            #expect(plain == expected)
            let protected = try await executed {
                try await app.logIn(ada, ada.authenticator.code())
            }
            // The code is looked at in a transaction of its own, on another connection.
            #expect(protected == expected)
        }
    }

    @Test func `a new password leaves the second factor in place`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            let change = NewKey(of: ada.account, to: "new")
            #expect(try await ada.client.put("/v1/account/credential", change.body).status == 200)
            let login: [(name: String, value: JSONValue)] = [
                (name: "userid", value: .string(ada.account.userid)),
                (name: "passwordKey", value: .string(Fixtures.passwordKey("new"))),
            ]
            let refused = try await app.client.post("/v1/sessions", .object(JSONObject(login)))
            #expect(refused.code == "totp_required")
        }
    }

    @Test func `a locked account is not asked for a code`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.protect(app.register())
            try await app.administer("UPDATE saltern.accounts SET locked_at = now()")
            #expect(try await app.logIn(ada, nil).code == "wrong_credentials")
            #expect(try await app.logIn(ada, ada.authenticator.code()).code == "wrong_credentials")
        }
    }
}
