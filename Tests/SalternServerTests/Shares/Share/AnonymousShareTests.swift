import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct AnonymousShareTests {
    private static func configuration(limit: Int = 1_000) -> ServiceConfiguration {
        var configuration = TestApplication.configuration
        configuration.shares = SharePolicy(acceptsAnonymous: true, anonymousLimit: limit)
        return configuration
    }

    private static func content(plaintext: Int = 64, _ extra: [String: JSONValue] = [:]) -> JSONValue {
        ShareFixtures.content(
            plaintext: plaintext, extra.merging(["expiresAt": "2026-01-08T00:00:00Z"]) { own, _ in own })
    }

    @Test func `nobody shares without an account unless the operator says so`() async throws {
        try await TestApplication.with { app in
            let reply = try await app.client.post("/v1/shares", Self.content())
            #expect(reply.status == 401)
            #expect(try await app.client.get("/v1/service").bool("shares.anonymous") == false)
            #expect(try await app.execute(CountShareRows()) == [[0, 0]])
        }
    }

    @Test func `without an account a share is small and short-lived`() async throws {
        try await TestApplication.with(Self.configuration()) { app in
            #expect(try await app.client.get("/v1/service").bool("shares.anonymous") == true)
            let share = try await TestShare(app.client, Self.content(plaintext: 65_536 - 28))
            for (content, code, field) in [
                (Self.content(plaintext: 65_537 - 28), "too_long", "sealed"),
                (Self.content(["expiresAt": "2026-01-08T00:00:01Z"]), "expiry_needed", "expiresAt"),
                (ShareFixtures.content(), "expiry_needed", "expiresAt"),
            ] {
                let manager = app.client.with(token: share.manageToken)
                for reply in [
                    try await app.client.post("/v1/shares", content), try await manager.put(share.path, content),
                ] {
                    #expect(reply.status == 422)
                    #expect(reply.code == code)
                    #expect(reply.string("field") == field)
                }
            }
            let body = [UInt8](repeating: 0x20, count: 98_305)
            #expect(try await app.client.send(.post, "/v1/shares", body: body).status == 413)
            // A token that is no good does not make somebody a stranger.
            #expect(try await app.client.with(token: "slt_x").post("/v1/shares", Self.content()).status == 401)
            #expect(
                try await app.client.with(token: share.manageToken).post("/v1/shares", Self.content()).status == 401)
        }
    }

    @Test func `a share without an account is opened, changed and deleted like any other`() async throws {
        try await TestApplication.with(Self.configuration()) { app in
            let ada = try await app.register()
            let share = try await TestShare(app.client, Self.content(["maxViews": 1]))
            let manager = app.client.with(token: share.manageToken)
            #expect(try await ada.client.delete(share.path).status == 404)
            let content = Self.content(["maxViews": 2])
            #expect(try await manager.put(share.path, content).status == 200)
            #expect(try await app.client.get(share.path).string("sealed") == ShareFixtures.sealed(content))
            #expect(try await app.client.get(share.path).integer("viewsLeft") == 0)
            #expect(try await app.execute(CountShareRows()) == [[0, 0]])
            let second = try await TestShare(app.client, Self.content())
            #expect(try await app.client.with(token: second.manageToken).delete(second.path).status == 204)
            #expect(try await app.execute(CountShareRows()) == [[0, 0]])
        }
    }

    @Test func `there are only so many shares without an account at a time`() async throws {
        try await TestApplication.with(Self.configuration(limit: 2)) { app in
            let ada = try await app.register()
            let first = try await TestShare(app.client, Self.content(["expiresAt": "2026-01-02T00:00:00Z"]))
            _ = try await TestShare(app.client, Self.content())
            let third = try await app.client.post("/v1/shares", Self.content())
            #expect(third.status == 403)
            #expect(third.code == "anonymous_shares_closed")
            #expect(try await app.execute(CountShareRows()) == [[2, 2]])
            // Accounts have their own limit.
            _ = try await TestShare(ada.client)
            app.clock.advance(by: .seconds(86_400))
            #expect(try await app.client.get(first.path).status == 404)
            _ = try await TestShare(app.client, Self.content())
            let now = app.clock.now
            let report = try await app.run {
                try await Purge(
                    database: app.postgres, sessions: SessionPolicy(), policy: PurgePolicy(), now: now
                ).run()
            }
            // What had ended made room for the third.
            #expect(report?.shares == 0)
            #expect(try await app.execute(CountShareRows()) == [[3, 3]])
        }
    }

    @Test func `when the operator ends it, what is there can still be opened and deleted`() async throws {
        try await TestApplication.with(Self.configuration()) { app in
            let share = try await TestShare(app.client, Self.content())
            try await TestApplication.with(TestApplication.configuration, app.database, clock: app.clock) {
                (closed: TestApplication) async throws -> Void in
                #expect(try await closed.client.get(share.path).status == 200)
                let manager = closed.client.with(token: share.manageToken)
                #expect(try await manager.put(share.path, Self.content()).code == "anonymous_shares_closed")
                #expect(try await manager.delete(share.path).status == 204)
            }
        }
    }
}
