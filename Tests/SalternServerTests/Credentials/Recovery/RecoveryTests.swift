import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct RecoveryTests {
    static let code = Fixtures.passwordKey("a printed code")

    @Test func `a recovery key opens the way to a new password key, and to nothing else`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            #expect(try await ada.client.get("/v1/account").bool("recovery.set") == false)
            let keyring = Fixtures.sealed()
            #expect(try await ada.setRecovery(Self.code, keyring: keyring).status == 200)
            let account = try await ada.client.get("/v1/account")
            #expect(account.bool("recovery.set") == true)
            #expect(account.string("recovery.createdAt") == "2026-01-01T00:00:00.000Z")

            let recovered = try await app.recover(ada, Self.code)
            #expect(recovered.status == 201, "\(recovered)")
            #expect(recovered.string("accountId") == ada.id)
            #expect(recovered.string("keyring") == keyring)
            #expect(recovered.integer("kdf.iterations") == 600_000)
            #expect(recovered.string("session.expiresAt") == "2026-01-01T00:15:00.000Z")
            let restricted = app.client.with(token: recovered.string("session.token"))

            #expect(try await restricted.get(path).status == 401)
            #expect(try await restricted.get("/v1/account").status == 401)
            #expect(try await restricted.get("/v1/sessions").status == 401)
            #expect(try await restricted.get("/v1/changes").status == 401)
            #expect(try await restricted.delete("/v1/sessions").status == 401)
            #expect(try await restricted.delete("/v1/sessions/current").status == 401)
            #expect(try await restricted.put(path, ItemTests.item(), ["If-Match": "*"]).status == 401)
            #expect(try await restricted.delete(path, ["If-Match": "*"]).status == 401)
            for key in [ada.passwordKey, Self.code] {
                let body: JSONValue = ["currentPasswordKey": .string(key)]
                #expect(try await restricted.post("/v1/rotations", body).status == 401)
                #expect(
                    try await restricted.send(
                        .delete, "/v1/account/recovery", body: TestClient.document(body)
                    ).status == 401)
            }
            #expect(try await ada.client.get("/v1/sessions").array("sessions")?.count == 1)
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 1)

            let newKey = Fixtures.passwordKey("new")
            let changed = try await restricted.put("/v1/account/credential", Self.credential(newKey))
            #expect(changed.status == 200, "\(changed)")
            #expect(try await ada.client.get(path).status == 401)
            #expect(try await !app.logsIn(ada, ada.passwordKey))
            #expect(try await app.logsIn(ada, newKey))
            #expect(try await app.stored().restrictedSessions == 0)
            #expect(try await app.stored().events == "credential_changed recovery_set recovery_used")
            // The printed code can be used again.
            #expect(try await app.recover(ada, Self.code).status == 201)
        }
    }

    @Test func `whatever is wrong, the answer is that of a failed log-in`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            _ = try await ada.setRecovery(Self.code)
            let wrong = try await app.recover(ada, Fixtures.passwordKey("another code"))
            #expect(wrong.status == 401)
            #expect(wrong.code == "wrong_credentials")
            let without = try await app.recover(bob, Self.code)
            let password = try await app.recover(ada, ada.passwordKey)
            let unknown = try await app.client.post(
                "/v1/recoveries", ["userid": "nobody@example.org", "recoveryKey": .string(Self.code)])
            try await app.administer("UPDATE saltern.accounts SET locked_at = now() WHERE account_id = '\(ada.id)'")
            let locked = try await app.recover(ada, Self.code)
            for reply in [without, password, unknown, locked] {
                #expect(Self.withoutID(reply) == Self.withoutID(wrong))
            }
            #expect(try await app.stored().restrictedSessions == 0)
            #expect(try await app.stored().events == "recovery_set")
        }
    }

    @Test func `it is set and removed with the present password key`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let eve = try await app.register()
            // Ada's session with Eve's key.
            let wrongKey = eve.passwordKey
            #expect(try await ada.setRecovery(Self.code, currentKey: wrongKey).code == "wrong_credentials")
            #expect(try await ada.setRecovery(ada.passwordKey).code == "recovery_key_reused")
            #expect(try await ada.removeRecovery().status == 404)
            #expect(try await ada.setRecovery(Self.code).status == 200)
            app.clock.advance(by: .seconds(60))
            // A retry changes nothing.
            #expect(try await ada.setRecovery(Self.code).status == 200)
            #expect(
                try await ada.client.get("/v1/account").string("recovery.createdAt") == "2026-01-01T00:00:00.000Z")
            #expect(try await ada.removeRecovery(currentKey: wrongKey).code == "wrong_credentials")

            let first = try #require(try await app.recover(ada, Self.code).string("session.token"))
            let second = Fixtures.passwordKey("a second code")
            #expect(try await ada.setRecovery(second).status == 200)
            let newKey = Fixtures.passwordKey("new")
            let late = app.client.with(token: first)
            #expect(try await late.put("/v1/account/credential", Self.credential(newKey)).status == 401)
            #expect(try await app.recover(ada, Self.code).status == 401)
            let token = try #require(try await app.recover(ada, second).string("session.token"))
            #expect(try await ada.removeRecovery().status == 204)
            #expect(try await ada.removeRecovery().status == 404)
            #expect(try await app.recover(ada, second).status == 401)
            let removed = app.client.with(token: token)
            #expect(try await removed.put("/v1/account/credential", Self.credential(newKey)).status == 401)
            #expect(
                try await app.stored().events
                    == "recovery_removed recovery_set recovery_set recovery_used recovery_used")
        }
    }

    @Test func `it survives a change of the credential, and a restricted session does not`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(Self.code)
            let token = try #require(try await app.recover(ada, Self.code).string("session.token"))
            let newKey = Fixtures.passwordKey("new")
            var body = Self.credential(newKey)
            if case .object(let object) = body {
                body = .object(
                    JSONObject(
                        object.members.map { (name: $0.name.string, value: $0.value) }
                            + [(name: "currentPasswordKey", value: .string(ada.passwordKey))]))
            }
            #expect(try await ada.client.put("/v1/account/credential", body).status == 200)
            let late = app.client.with(token: token)
            let again = Self.credential(Fixtures.passwordKey("a third"))
            #expect(try await late.put("/v1/account/credential", again).status == 401)
            #expect(try await app.logsIn(ada, newKey))
            #expect(try await app.recover(ada, Self.code).status == 201)
        }
    }

    @Test func `a restricted session ends after a quarter of an hour`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(Self.code)
            let token = try #require(try await app.recover(ada, Self.code).string("session.token"))
            app.clock.advance(by: .seconds(900))
            let late = app.client.with(token: token)
            let reply = try await late.put("/v1/account/credential", Self.credential(Fixtures.passwordKey("new")))
            #expect(reply.status == 401)
            #expect(try await app.logsIn(ada, ada.passwordKey))
        }
    }

    @Test func `guessing is slowed down, for userids that nobody has too, and together with log-ins`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            _ = try await ada.setRecovery(Self.code)
            let login = try await app.client.post(
                "/v1/sessions", ["userid": .string(ada.userid), "passwordKey": .string(ada.passwordKey)])
            let device = try #require(login.string("deviceToken"))
            func attempt(_ userid: String, _ key: String, device: String? = nil) async throws -> TestResponse {
                var claim: [(name: String, value: JSONValue)] = [(name: "name", value: "phone")]
                if let device { claim.append((name: "token", value: .string(device))) }
                return try await app.client.post(
                    "/v1/recoveries",
                    [
                        "userid": .string(userid), "recoveryKey": .string(key), "device": .object(JSONObject(claim)),
                    ])
            }
            for userid in [ada.userid, "nobody@example.org"] {
                for _ in 0..<5 {
                    #expect(try await attempt(userid, Fixtures.passwordKey("a guess")).status == 401)
                }
                let refused = try await attempt(userid, Self.code)
                #expect(refused.status == 429)
                #expect(refused.code == "too_many_attempts")
                #expect(refused.fields["Retry-After"] == "1")
            }
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 429)
            #expect(try await app.failures(of: ada, "failed_recoveries") == 5)
            // A device that was here before is not kept out by strangers.
            #expect(try await attempt(ada.userid, Self.code, device: device).status == 201)
            app.clock.advance(by: .seconds(1))
            #expect(try await attempt(ada.userid, Self.code).status == 201)
            #expect(try await app.failures(of: ada, "failed_recoveries") == 5)
            #expect(try await app.events(of: ada).contains("failed_recoveries"))
        }
    }

    @Test func `recoveries put nobody out whose sessions fill the plan`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_sessions = 2")
            let ada = try await app.register()
            let second = try await app.logIn(ada)
            _ = try await ada.setRecovery(Self.code)
            for _ in 0..<4 { #expect(try await app.recover(ada, Self.code).status == 201) }
            #expect(try await app.stored().restrictedSessions == 1)
            #expect(try await ada.client.get("/v1/account").status == 200)
            #expect(try await second.get("/v1/account").status == 200)
        }
    }

    static func credential(_ key: String) -> JSONValue {
        ["passwordKey": .string(key), "kdf": ["iterations": 600_000]]
    }

    /// A problem without the number of the request.
    private static func withoutID(_ reply: TestResponse) -> String {
        "\(reply.status) " + reply.text.replacing(/"requestId":"[^"]*"/, with: "")
    }
}

extension TestAccount {
    func setRecovery(
        _ key: String, keyring: String? = nil, currentKey: String? = nil
    ) async throws -> TestResponse {
        var members: [(name: String, value: JSONValue)] = [
            (name: "currentPasswordKey", value: .string(currentKey ?? passwordKey)),
            (name: "recoveryKey", value: .string(key)),
        ]
        if let keyring {
            let revision = Int64(try await client.get("/v1/account/keyring").integer("revision") ?? 0)
            members.append((name: "keyring", value: .string(keyring)))
            members.append((name: "accountKeyringRevision", value: .integer(revision)))
        }
        return try await client.put("/v1/account/recovery", .object(JSONObject(members)))
    }

    func removeRecovery(currentKey: String? = nil) async throws -> TestResponse {
        try await client.send(
            .delete, "/v1/account/recovery",
            body: TestClient.document(["currentPasswordKey": .string(currentKey ?? passwordKey)]))
    }
}

extension TestApplication {
    func recover(_ account: TestAccount, _ key: String) async throws -> TestResponse {
        try await client.post(
            "/v1/recoveries",
            ["userid": .string(account.userid), "recoveryKey": .string(key), "device": ["name": "A new phone"]])
    }
}
