import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct CredentialChangeTests {
    private static let path = "/v1/account/credential"

    @Test func `a new key replaces the old one and ends the other sessions`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let phone = try await app.logIn(ada)
            let reply = try await ada.client.put(Self.path, NewKey(of: ada, to: "new").body)
            #expect(reply.status == 200)
            #expect(reply.integer("kdf.iterations") == 600_000)
            #expect(reply.integer("sessionsEnded") == 1)
            #expect(reply.bool("currentSessionEnded") == false)
            #expect(reply.string("deviceToken")?.hasPrefix("sld_") == true)
            #expect(try await ada.client.get("/v1/account").status == 200)
            #expect(try await phone.get("/v1/account").status == 401)
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 401)
            #expect(try await app.logInStatus(ada.userid, Fixtures.passwordKey("new")) == 201)
            #expect(try await app.events(of: ada).contains("credential_changed"))
        }
    }

    @Test func `more iterations for the same password are the upgrade that log-in asks for`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            try await app.administer("UPDATE saltern.logins SET kdf_iterations = 10000")
            let reply = try await ada.client.put(
                Self.path, NewKey(of: ada, to: "stretched more", iterations: 700_000).body)
            #expect(reply.integer("kdf.iterations") == 700_000)
            let parameters = try await app.client.post("/v1/kdf", ["userid": .string(ada.userid)])
            #expect(parameters.integer("iterations") == 700_000)
            let login = try await app.client.post(
                "/v1/sessions",
                ["userid": .string(ada.userid), "passwordKey": .string(Fixtures.passwordKey("stretched more"))])
            #expect(login.status == 201)
            #expect(login.bool("kdfUpgradeRequired") == false)
        }
    }

    @Test func `iterations rise or stay, and the minimum binds`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register(iterations: 800_000)
            let lowered = try await ada.client.put(Self.path, NewKey(of: ada, to: "new", iterations: 799_999).body)
            #expect(lowered.status == 422)
            #expect(lowered.code == "iterations_lowered")
            #expect(lowered.string("field") == "kdf.iterations")
            #expect(lowered.integer("limit") == 800_000)
            try await app.administer("UPDATE saltern.logins SET kdf_iterations = 10000")
            let few = try await ada.client.put(Self.path, NewKey(of: ada, to: "new", iterations: 599_999).body)
            #expect(few.code == "out_of_range")
            #expect(few.string("field") == "kdf.iterations")
            // A key cannot be that of two numbers of iterations.
            let same = NewKey(of: ada, to: "new").with(["passwordKey": .string(ada.passwordKey)])
            #expect(try await ada.client.put(Self.path, same.body).code == "key_unchanged")
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 201)
        }
    }

    @Test func `a wrong present key changes nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let wrong = NewKey(of: ada, to: "new").with(["currentPasswordKey": .string(Fixtures.passwordKey("x"))])
            let reply = try await ada.client.put(Self.path, wrong.body)
            #expect(reply.status == 403)
            #expect(reply.code == "wrong_credentials")
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 201)
            #expect(try await app.events(of: ada).contains("credential_changed") == false)
        }
    }

    @Test func `a retry after a lost reply is a success and changes nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let request = NewKey(of: ada, to: "new").with(["keyring": .string(Fixtures.sealed())])
            #expect(try await ada.client.put(Self.path, request.body).integer("keyringRevision") == 1)
            let phone = try await app.client.post(
                "/v1/sessions", ["userid": .string(ada.userid), "passwordKey": .string(Fixtures.passwordKey("new"))])
            for retry in [request, request.with(["keyring": nil])] {
                let again = try await ada.client.put(Self.path, retry.body)
                #expect(again.status == 200, "\(again)")
                #expect(again.integer("sessionsEnded") == 0)
                #expect(again.integer("keyringRevision") == 1)
            }
            #expect(try await app.client.with(token: phone.string("session.token")).get("/v1/account").status == 200)
            #expect(try await app.events(of: ada).count { $0 == "credential_changed" } == 1)
            // The key is the new one, and the keyring was changed after it.
            let other = try await ada.client.put(
                Self.path, request.with(["keyring": .string(Fixtures.sealed())]).body)
            #expect(other.code == "keyring_changed")
            // Only the new key is as good as the present one, not any other that a request carries along.
            let more = try await ada.client.put(
                Self.path, request.with(["kdf": ["iterations": 700_000]]).body)
            #expect(more.code == "key_unchanged")
        }
    }

    @Test func `the keyring is sealed anew in the same transaction, and only over the one that was read`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let first = Fixtures.sealed()
            let none = NewKey(of: ada, to: "1").with(["keyring": .string(first), "keyringRevision": 0])
            #expect(try await ada.client.put(Self.path, none.body).integer("keyringRevision") == 1)
            let second = Fixtures.sealed()
            let request = NewKey(of: ada, to: "2").with([
                "currentPasswordKey": .string(Fixtures.passwordKey("1")), "keyring": .string(second),
            ])
            for stale in [0, 2] as [Int64] {
                let refused = try await ada.client.put(
                    Self.path, request.with(["keyringRevision": .integer(stale)]).body)
                #expect(refused.status == 409)
                #expect(refused.code == "keyring_changed")
            }
            #expect(try await app.logInStatus(ada.userid, Fixtures.passwordKey("1")) == 201)
            #expect(try await ada.client.get("/v1/account/keyring").string("keyring") == first)
            let changed = try await ada.client.put(Self.path, request.with(["keyringRevision": 1]).body)
            #expect(changed.integer("keyringRevision") == 2)
            #expect(try await ada.client.get("/v1/account/keyring").string("keyring") == second)
        }
    }

    @Test func `a restricted session sets a new key without the old one, and everybody logs in anew`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let restricted = try await app.openRestrictedSession(ada)
            #expect(try await restricted.get("/v1/account").status == 401)
            let request = NewKey(of: ada, to: "recovered").with([
                "currentPasswordKey": nil, "keyring": .string(Fixtures.sealed()),
            ])
            let unproven = try await ada.client.put(Self.path, request.body)
            #expect(unproven.status == 422)
            #expect(unproven.string("field") == "currentPasswordKey")
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 201)

            let reply = try await restricted.put(Self.path, request.body)
            #expect(reply.status == 200)
            #expect(reply.bool("currentSessionEnded") == true)
            #expect(reply.integer("sessionsEnded") == 3)
            #expect(reply.integer("keyringRevision") == 1)
            #expect(try await restricted.put(Self.path, request.body).status == 401)
            #expect(try await ada.client.get("/v1/account").status == 401)
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 401)
            #expect(try await app.logInStatus(ada.userid, Fixtures.passwordKey("recovered")) == 201)
        }
    }

    @Test func `a restricted session does nothing else, and not for long`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let restricted = try await app.openRestrictedSession(ada)
            let full = NewKey(of: ada, to: "new")
            #expect(try await restricted.put(Self.path, full.body).status == 401)
            #expect(
                try await restricted.put("/v1/account/userid", full.with(["userid": "other"]).body).status == 401)
            #expect(try await restricted.get("/v1/account/keyring").status == 401)
            app.clock.advance(by: .seconds(15 * 60))
            let request = full.with(["currentPasswordKey": nil])
            #expect(try await restricted.put(Self.path, request.body).status == 401)
            #expect(try await app.client.put(Self.path, request.body).status == 401)
            #expect(try await app.logInStatus(ada.userid, ada.passwordKey) == 201)
        }
    }

    @Test func `a locked account's restricted session sets nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let restricted = try await app.openRestrictedSession(ada)
            try await app.administer("UPDATE saltern.accounts SET locked_at = now()")
            let request = NewKey(of: ada, to: "new").with(["currentPasswordKey": nil])
            #expect(try await restricted.put(Self.path, request.body).status == 401)
        }
    }

    @Test func `bad input is refused with its code and field`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let rows = [
                BadInput(["currentPasswordKey": "x"], 422, "not_a_stretched_key", "currentPasswordKey"),
                BadInput(removing: "passwordKey", 422, "missing_member", "passwordKey"),
                BadInput(["passwordKey": "x"], 422, "not_a_stretched_key", "passwordKey"),
                BadInput(removing: "kdf", 422, "missing_member", "kdf"),
                BadInput(["kdf": ["iterations": 10_000_001]], 422, "out_of_range", "kdf.iterations"),
                BadInput(["keyring": "%"], 422, "not_base64", "keyring"),
                BadInput(["keyringRevision": 1], 422, "missing_member", "keyring"),
                BadInput(["userid": "ada"], 422, "unknown_member", "userid"),
                BadInput(["password": "x"], 422, "password_refused", "password"),
            ]
            for bad in rows {
                var request = NewKey(of: ada, to: "new")
                request.members.merge(bad.members) { $1 }
                if let removed = bad.removed { request.members[removed] = nil }
                bad.check(try await ada.client.put(Self.path, request.body))
            }
        }
    }
}
