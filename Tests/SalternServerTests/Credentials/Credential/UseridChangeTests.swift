import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct UseridChangeTests {
    private static let path = "/v1/account/userid"

    @Test func `the new userid logs in, and the old one is free at once`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            let phone = try await app.logIn(ada)
            let request = NewKey(of: ada, to: "lovelace", iterations: 700_000).with(["userid": "lovelace"])
            let reply = try await ada.client.put(Self.path, request.body)
            #expect(reply.status == 200)
            #expect(reply.string("userid") == "lovelace")
            #expect(reply["kdf"] == ["iterations": 700_000])
            #expect(reply.integer("sessionsEnded") == 1)
            #expect(reply.bool("currentSessionEnded") == false)
            #expect(reply.string("deviceToken") != nil)
            #expect(try await ada.client.get("/v1/account").string("userid") == "lovelace")
            #expect(try await phone.get("/v1/account").status == 401)
            #expect(try await app.logInStatus("ada", ada.passwordKey) == 401)
            #expect(try await app.logInStatus("lovelace", Fixtures.passwordKey("lovelace")) == 201)
            #expect(try await app.events(of: ada).contains("userid_changed"))
            // Somebody else takes the old name and is somebody else.
            let other = try await app.register("ada")
            #expect(other.id != ada.id)
            #expect(try await ada.client.get("/v1/account").string("accountId") == ada.id)
        }
    }

    @Test func `a retry after a lost reply is a success`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            let request = NewKey(of: ada, to: "lovelace").with(["userid": "lovelace"])
            _ = try await ada.client.put(Self.path, request.body)
            let again = try await ada.client.put(Self.path, request.body)
            #expect(again.status == 200)
            #expect(again.string("userid") == "lovelace")
            #expect(again.integer("sessionsEnded") == 0)
            #expect(try await app.events(of: ada).count { $0 == "userid_changed" } == 1)
        }
    }

    @Test func `a userid that somebody has is refused and nothing changes`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            _ = try await app.register("bob")
            let request = NewKey(of: ada, to: "new").with([
                "userid": "bob", "keyring": .string(Fixtures.sealed()),
            ])
            let refused = try await ada.client.put(Self.path, request.body)
            #expect(refused.status == 409)
            #expect(refused.code == "userid_taken")
            #expect(try await app.logInStatus("ada", ada.passwordKey) == 201)
            #expect(try await app.logInStatus("bob", Fixtures.passwordKey("bob")) == 201)
            #expect(try await ada.client.get("/v1/account/keyring").status == 404)
            #expect(try await ada.client.get("/v1/account").string("userid") == "ada")
        }
    }

    @Test func `bad input is refused with its code and field`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada", iterations: 700_000)
            let rows = [
                BadInput(["userid": "Bob"], 422, "userid_not_canonical", "userid"),
                BadInput(["userid": ""], 422, "invalid_userid", "userid"),
                BadInput(["userid": "ada"], 422, "userid_unchanged", "userid"),
                BadInput(["passwordKey": .string(ada.passwordKey)], 422, "key_unchanged", "passwordKey"),
                BadInput(["kdf": ["iterations": 600_000]], 422, "iterations_lowered", "kdf.iterations"),
                BadInput(removing: "currentPasswordKey", 422, "missing_member", "currentPasswordKey"),
                BadInput(
                    ["currentPasswordKey": .string(Fixtures.passwordKey("x"))], 403, "wrong_credentials",
                    "currentPasswordKey"),
                BadInput(
                    ["keyring": .string(Fixtures.sealed()), "keyringRevision": 1], 409, "keyring_changed",
                    "keyringRevision"),
            ]
            for bad in rows {
                var request = NewKey(of: ada, to: "new", iterations: 700_000).with(["userid": "lovelace"])
                request.members.merge(bad.members) { $1 }
                if let removed = bad.removed { request.members[removed] = nil }
                bad.check(try await ada.client.put(Self.path, request.body))
            }
            #expect(try await app.logInStatus("ada", ada.passwordKey) == 201)
            #expect(try await ada.client.get("/v1/account").string("userid") == "ada")
        }
    }
}
