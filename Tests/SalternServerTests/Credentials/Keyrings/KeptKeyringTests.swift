import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// A keyring that was replaced can be restored.
@Suite struct KeptKeyringTests {
    private static let path = "/v1/account/keyring"

    private static func put(
        _ account: TestAccount, _ keyring: String, recovery: String? = nil, isProven: Bool = false,
        by client: TestClient? = nil
    ) async throws -> TestResponse {
        let client = client ?? account.client
        var members: [(name: String, value: JSONValue)] = [(name: "keyring", value: .string(keyring))]
        if let recovery { members.append((name: "recoveryKeyring", value: .string(recovery))) }
        if isProven { members.append((name: "currentPasswordKey", value: .string(account.passwordKey))) }
        let present = try await client.get(path).fields["ETag"]
        let condition = present.map { ["If-Match": $0] } ?? ["If-None-Match": "*"]
        return try await client.put(path, .object(JSONObject(members)), condition)
    }

    /// The keyrings that can be restored, the one first that was replaced first.
    private static func kept(_ client: TestClient) async throws -> [String?] {
        let reply = try await client.get(path + "/kept")
        #expect(reply.status == 200, "\(reply)")
        let count = try #require(reply.array("keyrings")).count
        return (0..<count).map { reply.string("keyrings.\($0).keyring") }
    }

    /// An account with a keyring, and what it is.
    private static func prepared(_ app: TestApplication) async throws -> (TestAccount, keyring: String) {
        let ada = try await app.register()
        let keyring = Fixtures.sealed()
        #expect(try await put(ada, keyring).status == 201)
        #expect(try await kept(ada.client).isEmpty)
        return (ada, keyring)
    }

    @Test func `whoever has a session alone cannot push out the keyring of before, however often`() async throws {
        try await TestApplication.with { app in
            let (ada, good) = try await Self.prepared(app)
            for round in 1...12 {
                app.clock.advance(by: .seconds(1))
                #expect(try await Self.put(ada, Fixtures.sealed()).status == 200)
                let kept = try await Self.kept(ada.client)
                #expect(kept.first == good, "round \(round)")
                #expect(kept.count == min(round, 4))
            }
            let reply = try await ada.client.get(Self.path + "/kept")
            #expect(reply.integer("keyrings.0.revision") == 1)
            #expect(reply.bool("keyrings.0.withPasswordKey") == false)
            #expect(reply.string("keyrings.0.replacedAt") == "2026-01-01T00:00:01.000Z")
            #expect(reply.string("keyrings.0.expiresAt") == "2026-01-31T00:00:01.000Z")
            #expect(try await app.events(of: ada).filter { $0 == "keyring_changed" }.count == 12)
            // With the password key it goes back, and what it replaces is kept beside the others.
            #expect(try await Self.put(ada, good, isProven: true).status == 200)
            #expect(try await ada.client.get(Self.path).string("keyring") == good)
            #expect(try await Self.kept(ada.client).count == 5)
        }
    }

    @Test func `a wrong password key, a precondition that fails and a retry keep nothing`() async throws {
        try await TestApplication.with { app in
            let (ada, good) = try await Self.prepared(app)
            let wrong: JSONValue = [
                "keyring": .string(Fixtures.sealed()), "currentPasswordKey": .string(Fixtures.passwordKey("wrong")),
            ]
            #expect(try await ada.client.put(Self.path, wrong, ["If-Match": "*"]).status == 403)
            let late: JSONValue = ["keyring": .string(Fixtures.sealed())]
            #expect(try await ada.client.put(Self.path, late, ["If-Match": "\"7\""]).status == 412)
            #expect(try await Self.put(ada, good).status == 200)
            #expect(try await Self.put(ada, good, isProven: true).status == 200)
            #expect(try await Self.kept(ada.client).isEmpty)
            #expect(try await ada.client.get(Self.path).string("keyring") == good)
            #expect(try await app.client.get(Self.path + "/kept").status == 401)
        }
    }

    @Test func `replacing with the password key uses one place, and none of those for sessions`() async throws {
        try await TestApplication.with { app in
            let (ada, first) = try await Self.prepared(app)
            var replaced = first
            for _ in 0..<6 {
                app.clock.advance(by: .seconds(1))
                let next = Fixtures.sealed()
                #expect(try await Self.put(ada, next, isProven: true).status == 200)
                #expect(try await Self.kept(ada.client) == [replaced])
                replaced = next
            }
            app.clock.advance(by: .seconds(1))
            #expect(try await Self.put(ada, Fixtures.sealed()).status == 200)
            #expect(try await Self.kept(ada.client).last == replaced)
        }
    }

    @Test(arguments: [(7, 30), (0, 30), (90, 90)])
    func `one is kept for as long as deleted items are, and at least 30 days`(plan: Int, days: Int64) async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET deleted_days = \(plan)")
            let (ada, good) = try await Self.prepared(app)
            _ = try await Self.put(ada, Fixtures.sealed())
            app.clock.advance(by: .seconds(days * 86_400 - 1))
            let client = try await app.logIn(ada)
            #expect(try await Self.kept(client) == [good])
            app.clock.advance(by: .seconds(1))
            #expect(try await Self.kept(client).isEmpty)
            let report = try await app.run { [postgres = app.postgres, now = app.clock.now] in
                try await Purge(
                    database: postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now
                ).run()
            }
            #expect(report?.keyrings == 1)
            // Its place is free again.
            _ = try await Self.put(ada, Fixtures.sealed(), by: client)
            #expect(try await Self.kept(client).count == 1)
        }
    }

    /// What the recovery code opens is replaced in the same request, and by itself.
    @Test func `what the recovery code opens is kept too, and a recovery brings it`() async throws {
        try await TestApplication.with { app in
            let (ada, _) = try await Self.prepared(app)
            let good = Fixtures.sealed()
            #expect(try await ada.setRecovery(RecoveryTests.code, keyring: good).status == 200)
            let present = try #require(try await ada.client.get(Self.path).string("keyring"))
            // The account's keyring stays as it is.
            #expect(try await Self.put(ada, present, recovery: Fixtures.sealed()).status == 200)
            app.clock.advance(by: .seconds(1))
            #expect(try await Self.put(ada, Fixtures.sealed(), recovery: Fixtures.sealed()).status == 200)
            let kept = try await ada.client.get(Self.path + "/kept")
            #expect(kept.string("keyrings.0.recoveryKeyring") == good)
            #expect(kept.string("keyrings.0.keyring") == present)
            let recovered = try await app.recover(ada, RecoveryTests.code)
            #expect(recovered.status == 201)
            #expect(recovered.string("keyring") != good)
            #expect(recovered.string("keptKeyrings.0") == good)
            // The restricted session gets no list: it sets a new credential and nothing else.
            let restricted = app.client.with(token: recovered.string("session.token"))
            #expect(try await restricted.get(Self.path + "/kept").status == 401)
        }
    }

    /// Ways to give up a code.
    @Test(arguments: ["DELETE", "PUT", "keyring"])
    func `what a code opened goes with the code`(_ way: String) async throws {
        try await TestApplication.with { app in
            let (ada, good) = try await Self.prepared(app)
            #expect(try await ada.setRecovery(RecoveryTests.code, keyring: Fixtures.sealed()).status == 200)
            #expect(try await Self.put(ada, Fixtures.sealed(), recovery: Fixtures.sealed()).status == 200)
            switch way {
            case "DELETE":
                let reply = try await ada.client.send(
                    .delete, "/v1/account/recovery", body: TestClient.document(ada.currentKey))
                #expect(reply.status == 204)
            case "PUT":
                let other = Fixtures.passwordKey("another printed code")
                #expect(try await ada.setRecovery(other, keyring: Fixtures.sealed()).status == 200)
                let recovered = try await app.recover(ada, other)
                #expect(recovered.status == 201)
                #expect(recovered["keptKeyrings"] == nil)
            default:
                let body: JSONValue = [
                    "keyring": .string(Fixtures.sealed()), "removeRecovery": true,
                    "currentPasswordKey": .string(ada.passwordKey),
                ]
                #expect(try await ada.client.put(Self.path, body, ["If-Match": "*"]).status == 200)
            }
            let kept = try await ada.client.get(Self.path + "/kept")
            #expect(!kept.text.contains("recoveryKeyring"), "\(kept)")
            #expect(kept.string("keyrings.0.keyring") == good)
        }
    }

    @Test(arguments: ["credential", "userid", "rotation", "recovery"])
    func `a new credential drops them: they open with the old one`(_ way: String) async throws {
        try await TestApplication.with { app in
            let (ada, _) = try await Self.prepared(app)
            _ = try await Self.put(ada, Fixtures.sealed())
            let members: [String: JSONValue?] = ["keyring": .string(Fixtures.sealed()), "keyringRevision": 2]
            let new = NewKey(of: ada, to: "new").with(members)
            let reply: TestResponse
            switch way {
            case "userid":
                let body = new.with(["userid": .string(Fixtures.userid())]).body
                reply = try await ada.client.put("/v1/account/userid", body)
            case "rotation":
                var rotation = RotationClient(ada)
                try await rotation.open()
                try await rotation.stageAll()
                reply = try await ada.client.post("/v1/rotations/\(rotation.id)/commit", new.body)
            case "recovery":
                let restricted = try await app.openRestrictedSession(ada)
                reply = try await restricted.put(
                    "/v1/account/credential", new.with(["currentPasswordKey": nil]).body)
            default: reply = try await ada.client.put("/v1/account/credential", new.body)
            }
            #expect(reply.status == 200, "\(reply)")
            try await app.prepareAccountRows()
            #expect(try await app.accountRows(ada)["kept_keyrings.account_id"] == 0)
        }
    }

    @Test func `of many replacements at once no more are kept than there are places`() async throws {
        try await TestApplication.with(connections: 4) { app in
            let (ada, good) = try await Self.prepared(app)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<24 {
                    group.addTask {
                        let body: JSONValue = ["keyring": .string(Fixtures.sealed())]
                        return try await ada.client.put(Self.path, body, ["If-Match": "*"]).status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 200, count: 24))
            let kept = try await Self.kept(ada.client)
            #expect(kept.count == 4)
            #expect(kept.contains(good))
        }
    }
}
