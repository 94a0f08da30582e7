import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing
import WebAuthn

@testable import SalternServer

@Suite struct PasskeyLogInTests {
    @Test func `a passkey is asked for after the right password key, and opens one session`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada)
            let required = try await app.tryLogIn(ada)
            #expect(required.status == 401)
            #expect(required.code == "second_factor_required")
            #expect(required["factors"] == ["passkey"])
            let options = try #require(required["publicKey"])
            #expect(options.member("rpId") == "example.org")
            #expect(options.member("allowCredentials") == [["type": "public-key", "id": .string(key.idText)]])
            key.userHandle = nil
            let answer = try key.get(options)
            #expect(try await app.tryLogIn(ada, passkey: answer).status == 201)
            let again = try await app.tryLogIn(ada, passkey: answer)
            #expect(again.status == 401)
            #expect(again.code == "wrong_passkey")
            let listed = try #require(try await ada.client.get("/v1/account/passkeys").array("passkeys"))
            #expect(listed[0].member("lastUsedAt") != nil)
        }
    }

    @Test func `accounts without passkeys are asked for what they were`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let plain = try await app.register()
            #expect(try await app.tryLogIn(plain).status == 201)
            let ada = try await app.protect(app.register())
            #expect(try await app.logIn(ada, nil).code == "totp_required")
        }
    }

    @Test func `an account with both is asked for either`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.protect(app.register())
            let key = try await app.addPasskey(ada.account)
            let required = try await app.logIn(ada, nil)
            #expect(required.code == "second_factor_required")
            #expect(required["factors"] == ["totp", "passkey"])
            #expect(try await app.logIn(ada, ada.authenticator.code(9)).code == "wrong_totp")
            #expect(try await app.logIn(ada, ada.authenticator.code()).status == 201)
            #expect(try await app.logIn(ada, ada.recoveryCodes[0]).status == 201)
            let answer = try key.get(#require(required["publicKey"]))
            #expect(try await app.tryLogIn(ada.account, passkey: answer, totp: "123456").code == "conflicting_members")
            #expect(try await app.tryLogIn(ada.account, passkey: answer).status == 201)
        }
    }

    @Test func `a code does not open an account that has passkeys alone`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            try await app.addPasskey(ada)
            for code in ["123456", "AAAA-AAAA-AAAA-AAAA-AAAA"] {
                #expect(try await app.tryLogIn(ada, totp: code).code == "second_factor_required")
            }
        }
    }

    @Test func `a wrong answer opens nothing and delays nobody`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada)
            let eve = try await app.register()
            let others = try await app.addPasskey(eve)
            let options = try #require(try await app.tryLogIn(ada)["publicKey"])
            let foreign = try #require(try await app.tryLogIn(eve)["publicKey"])
            var answers = try [others.get(options), key.get(foreign), SoftwareAuthenticator().get(options)]
            for change: (SoftwareAuthenticator) -> Void in [
                { $0.origin = "https://example.com" }, { $0.rpID = "example.com" }, { $0.flags = 0x0C },
                { $0.flags = 0x05 }, { $0.moreClientData = #","crossOrigin":true"# },
                { $0.userHandle = others.userHandle },
            ] {
                let (origin, rpID, flags, handle) = (key.origin, key.rpID, key.flags, key.userHandle)
                change(key)
                answers.append(try key.get(options))
                (key.origin, key.rpID, key.flags, key.userHandle) = (origin, rpID, flags, handle)
                key.moreClientData = ""
            }
            let right = try key.get(options)
            let response = try #require(right.member("response"))
            answers.append(
                right.with(
                    "response", response.with("signature", .string(Base64URL.encodeToString(SecureRandom.bytes(64))))))
            for answer in answers {
                let wrong = try await app.tryLogIn(ada, passkey: answer)
                #expect(wrong.status == 401)
                #expect(wrong.code == "wrong_passkey")
            }
            #expect(!(try await app.events(of: ada)).contains("second_factor_failed"))
            #expect(try await app.tryLogIn(ada, passkey: right).status == 201)
        }
    }

    @Test func `a sign count that does not grow is refused and logged`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = SoftwareAuthenticator()
            key.signCount = 7
            try await app.addPasskey(ada, key)
            let copy = try key.get(#require(try await app.tryLogIn(ada)["publicKey"]))
            #expect(
                try await app.tryLogIn(ada, passkey: key.get(#require(try await app.tryLogIn(ada)["publicKey"]))).status
                    == 201)
            #expect(try await app.tryLogIn(ada, passkey: copy).code == "wrong_passkey")
            #expect(app.log.lines.contains { $0.contains("sign_count_did_not_grow") })
            // The account is not locked.
            #expect(
                try await app.tryLogIn(ada, passkey: key.get(#require(try await app.tryLogIn(ada)["publicKey"]))).status
                    == 201)
        }
    }

    @Test func `a passkey that logs in opens a session without userid and password`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let stored = try await ada.client.put(
                "/v1/account/keyring", ["keyring": .string(Fixtures.sealed())], ["If-None-Match": "*"])
            #expect(stored.status < 300)
            let key = try await app.addPasskey(ada, logsIn: true)
            let options = try await app.passkeyLogInOptions()
            #expect(options.member("allowCredentials") == [])
            #expect(options.member("userVerification") == "required")
            let answer = try key.get(options)
            let opened = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
            #expect(opened.status == 201, "\(opened)")
            #expect(opened.string("accountId") == ada.id)
            #expect(opened.string("keyring") != nil)
            #expect(opened["unlock"] == nil)
            let token = try #require(opened.string("session.token"))
            #expect(try await app.client.with(token: token).get("/v1/account").status == 200)
            #expect(try await app.client.post("/v1/passkeys/sessions", ["credential": answer]).code == "wrong_passkey")
        }
    }

    @Test func `sessions of passkeys are outgoing events where a destination requests them`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            try await app.createDestination("billing", [.sessionOpened])
            try await app.readDestinations()
            let alone = try key.get(try await app.passkeyLogInOptions())
            #expect(try await app.client.post("/v1/passkeys/sessions", ["credential": alone]).status == 201)
            #expect(try await app.undelivered().map(\.kind) == ["session.opened"])
            let options = try #require(try await app.tryLogIn(ada)["publicKey"])
            #expect(try await app.tryLogIn(ada, passkey: try key.get(options)).status == 201)
            #expect(try await app.undelivered().map(\.kind) == ["session.opened", "session.opened"])
            #expect(try await app.client.post("/v1/passkeys/sessions", ["credential": alone]).status == 401)
            #expect(try await app.undelivered().count == 2)
        }
    }

    @Test func `unknown passkeys, locked accounts and wrong signatures look alike`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let second = try await app.addPasskey(ada)
            let unverified = try await app.addPasskey(ada, logsIn: true)
            unverified.flags = 0x19
            let unknown = SoftwareAuthenticator()
            unknown.userHandle = key.userHandle
            let stranger = SoftwareAuthenticator()
            stranger.userHandle = SecureRandom.bytes(16)
            func refusal(_ answer: JSONValue) async throws -> JSONValue? {
                let reply = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
                #expect(reply.status == 401)
                return reply["detail"]
            }
            var details: [JSONValue?] = []
            for authenticator in [unknown, stranger, second, unverified] {
                details.append(try await refusal(authenticator.get(app.passkeyLogInOptions())))
            }
            let handle = key.userHandle
            key.userHandle = nil
            details.append(try await refusal(key.get(app.passkeyLogInOptions())))
            key.userHandle = handle
            // A challenge that asked for a second factor.
            details.append(try await refusal(key.get(#require(try await app.tryLogIn(ada)["publicKey"]))))
            let late = try await key.get(app.passkeyLogInOptions())
            app.clock.advance(by: .seconds(300))
            details.append(try await refusal(late))
            let answer = try await key.get(app.passkeyLogInOptions())
            try await app.administer("UPDATE saltern.accounts SET locked_at = now()")
            details.append(try await refusal(answer))
            #expect(Set(details).count == 1)
        }
    }

    @Test func `unknown passkeys, locked accounts and wrong signatures take the same work`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            let handle = try #require(key.userHandle)
            let unknown = SoftwareAuthenticator()
            unknown.userHandle = handle
            let stranger = SoftwareAuthenticator()
            stranger.userHandle = SecureRandom.bytes(16)
            let id = AccountID(try #require(UUID(bytes: handle)))
            let stored = try #require(
                PasskeyID(key.id).map { Owned(accountID: id, read: FindUsablePasskey(id: $0)) })
            let known = try #require(try await app.execute(stored).first)
            var answers: [(answer: JSONValue, passkey: UsablePasskey?)] = []
            func answer(_ authenticator: SoftwareAuthenticator, _ passkey: UsablePasskey?) async throws {
                answers.append((try await authenticator.get(app.passkeyLogInOptions()), passkey))
            }
            try await answer(unknown, nil)
            try await answer(stranger, nil)
            key.changeSignature = { SecureRandom.bytes($0.count) }
            try await answer(key, known)
            key.changeSignature = { $0 }
            key.flags = 0x05
            try await answer(key, known)
            key.flags = 0x1D
            // A locked account has no usable passkey.
            try await answer(key, nil)
            try await app.administer("UPDATE saltern.accounts SET locked_at = now()")
            var executions: [[String: Int64]] = []
            for (answer, passkey) in answers {
                let before = try await app.executions()
                let reply = try await app.client.post("/v1/passkeys/sessions", ["credential": answer])
                #expect(reply.status == 401)
                executions.append(try await app.executions().difference(from: before))
                let count = Assertion.Verifications()
                #expect(throws: WrongPasskey.self) {
                    try Assertion.$verifications.withValue(count) {
                        try PasskeyVerifier(app.configuration).verify(
                            AuthenticationResponse(json: answer), of: id, passkey, for: .logIn, .alone,
                            now: app.clock.now)
                    }
                }
                #expect(count.count == 1)
            }
            #expect(executions == Array(repeating: ["FindPasskeyLogIn": 1], count: answers.count))
        }
    }

    @Test func `one challenge opens one session, on whatever node`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register()
            let key = try await app.addPasskey(ada, logsIn: true)
            try await TestApplication.with(app.configuration, app.database, clock: app.clock) { other in
                for _ in 0..<10 {
                    let answer = try await key.get(app.passkeyLogInOptions())
                    async let one = app.client.post("/v1/passkeys/sessions", ["credential": answer])
                    async let two = other.client.post("/v1/passkeys/sessions", ["credential": answer])
                    #expect(try await Set([one.status, two.status]) == [201, 401])
                }
            }
        }
    }

    @Test func `an operator removes passkeys with the other second factors`() async throws {
        try await TestApplication.with(TestApplication.withPasskeys) { app in
            let ada = try await app.register("ada")
            try await app.addPasskey(ada)
            let removed = try await app.asOwner {
                try await SecondFactorAdministration(database: $0).remove(
                    of: .userid("ada"), by: AuditSignature(actor: AuditLogTests.admin, now: app.clock.now))
            }
            #expect(!removed.hadCodes)
            #expect(removed.passkeys == ["Key"])
            #expect(try await app.tryLogIn(ada).status == 201)
        }
    }
}
