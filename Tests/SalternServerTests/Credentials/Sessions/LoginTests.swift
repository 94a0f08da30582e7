import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct LoginTests {
    @Test func `the right key opens a session`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            let login = try await app.client.post(
                "/v1/sessions",
                ["userid": "ada", "passwordKey": .string(ada.passwordKey), "device": ["name": "Web"]])
            #expect(login.status == 201)
            #expect(login.string("accountId") == ada.id)
            #expect(login.string("session.expiresAt") == "2027-01-01T00:00:00.000Z")
            #expect(login.bool("kdfUpgradeRequired") == false)
            #expect(login["keyring"] == nil)
            let token = try #require(login.string("session.token"))
            #expect(try await app.client.with(token: token).get("/v1/account").status == 200)
        }
    }

    @Test func `unknown userid, wrong key and locked account answer alike after the same statements`() async throws {
        // One connection, so that it has counted every execution of every prepared statement.
        try await TestApplication.with(connections: 1) { app in
            _ = try await app.register("ada")
            let bob = try await app.register("bob")
            try await app.administer("UPDATE saltern.accounts SET locked_at = now() WHERE userid = 'bob'")
            let wrong = JSONValue.string(Fixtures.passwordKey("wrong"))
            let bodies: [JSONValue] = [
                ["userid": "nobody", "passwordKey": wrong],
                ["userid": "ada", "passwordKey": wrong],
                ["userid": "bob", "passwordKey": .string(bob.passwordKey)],
                ["userid": "bob", "passwordKey": wrong],
            ]
            var replies: [TestResponse] = []
            var executions: [[String: Int64]] = []
            for body in bodies {
                let before = try await app.executions()
                replies.append(try await app.client.post("/v1/sessions", body))
                executions.append(try await app.executions().difference(from: before))
            }
            let first = try #require(replies.first)
            #expect(first.status == 401)
            #expect(first.code == "wrong_credentials")
            for (reply, executed) in zip(replies, executions) {
                #expect(reply.status == first.status)
                #expect(reply.comparableBody == first.comparableBody)
                #expect(reply.comparableFields == first.comparableFields)
                #expect(
                    executed == [
                        "FindLogin": 1, "FindFailedAttempts": 1, "OpenSession": 1, "StoreSession": 1,
                        "RecordFailedAttempt": 1,
                        "HoldFailedAttempts": 1,
                    ])
            }
            // A login that succeeds writes its session and nothing else; the first on a node counts the sessions.
            let carol = try await app.register("carol")
            _ = try await app.logIn(carol)
            let before = try await app.executions()
            _ = try await app.logIn(carol)
            #expect(
                try await app.executions().difference(from: before)
                    == [
                        "FindLogin": 1, "FindFailedAttempts": 1, "OpenSession": 1, "StoreSession": 1,
                        "HoldFailedAttempts": 1,
                    ])
        }
    }

    @Test func `an account below the minimum logs in and is told to upgrade`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada")
            try await app.administer("UPDATE saltern.logins SET kdf_iterations = 10000")
            let login = try await app.client.post(
                "/v1/sessions", ["userid": "ada", "passwordKey": .string(ada.passwordKey)])
            #expect(login.status == 201)
            #expect(login.bool("kdfUpgradeRequired") == true)
        }
    }

    @Test func `bad input is refused with its code and field`() async throws {
        try await TestApplication.with { app in
            let rows = [
                BadInput(removing: "userid", 422, "missing_member", "userid"),
                BadInput(["userid": "Ada"], 422, "userid_not_canonical", "userid"),
                BadInput(removing: "passwordKey", 422, "missing_member", "passwordKey"),
                BadInput(["passwordKey": "x"], 422, "not_a_stretched_key", "passwordKey"),
                BadInput(["device": ["name": 1]], 422, "wrong_type", "device.name"),
                BadInput(["kdf": ["iterations": 600_000]], 422, "unknown_member", "kdf"),
                BadInput(["password": "x"], 422, "password_refused", "password"),
            ]
            for bad in rows {
                var members: [String: JSONValue] = [
                    "userid": "ada", "passwordKey": .string(Fixtures.passwordKey("ada")),
                ]
                members.merge(bad.members) { $1 }
                if let removed = bad.removed { members[removed] = nil }
                let body = JSONValue.object(JSONObject(members.map { (name: $0.key, value: $0.value) }))
                bad.check(try await app.client.post("/v1/sessions", body))
            }
        }
    }
}

extension TestResponse {
    /// The body without what names the request.
    fileprivate var comparableBody: JSONValue? { self[""]?.without("requestId") }

    /// The fields without what names the request.
    fileprivate var comparableFields: [HTTPFields.Field] { fields.filter { $0.name != "X-Request-Id" } }
}
