import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ShareLimitTests {
    @Test func `a plan says how many shares there may be, and how large`() async throws {
        try await TestApplication.with { app in
            try await app.administer("UPDATE saltern.plans SET max_shares = 2, max_item_bytes = 228")
            let ada = try await app.register()
            let large = try await ada.client.post("/v1/shares", ShareFixtures.content(plaintext: 201))
            #expect(large.status == 403)
            #expect(large.code == "quota_exceeded")
            #expect(large.string("limit") == "itemBytes")
            #expect(large.integer("allowed") == 228)
            #expect(large.integer("used") == 229)

            let ending = try await TestShare(
                ada.client, ShareFixtures.content(plaintext: 200, ["expiresAt": "2026-01-01T01:00:00Z"]))
            let second = try await TestShare(ada.client)
            let many = try await ada.client.post("/v1/shares", ShareFixtures.content())
            #expect(many.string("limit") == "shares")
            #expect(many.integer("allowed") == 2)
            #expect(many.integer("used") == 2)
            for client in [ada.client, app.client.with(token: ending.manageToken)] {
                let replaced = try await client.put(ending.path, ShareFixtures.content(plaintext: 201))
                #expect(replaced.string("limit") == "itemBytes")
            }

            // What has expired counts no more, purged or not; deleting makes room.
            app.clock.advance(by: .seconds(3_600))
            #expect(try await ada.client.get("/v1/account").integer("usage.shares") == 1)
            _ = try await TestShare(ada.client)
            #expect(try await ada.client.post("/v1/shares", ShareFixtures.content()).status == 403)
            #expect(try await ada.client.delete(second.path).status == 204)
            _ = try await TestShare(ada.client)
        }
    }

    @Test func `a plan's limit holds when many shares are made at once`() async throws {
        try await TestApplication.with(connections: 8) { app in
            try await app.administer("UPDATE saltern.plans SET max_shares = 5")
            for _ in 0..<6 {
                let ada = try await app.register()
                let statuses = try await Self.count(40) {
                    try await ada.client.post("/v1/shares", ShareFixtures.content())
                }
                #expect(statuses == [201: 5, 403: 35])
            }
            #expect(try await app.execute(CountShareRows()) == [[30, 30]])
        }
    }

    /// As many as may wait for one share; see `KeyTable`.
    @Test func `sixty who look at once get exactly as many views as there are`() async throws {
        try await TestApplication.with(connections: 8) { app in
            let ada = try await app.register()
            for maxViews in [1, 3, 59] {
                let share = try await TestShare(
                    ada.client, ShareFixtures.content(["maxViews": .integer(Int64(maxViews))]))
                let statuses = try await Self.count(60) { try await app.client.get(share.path) }
                #expect(statuses == [200: maxViews, 404: 60 - maxViews])
            }
            #expect(try await app.execute(CountShareRows()) == [[0, 0]])
        }
    }

    @Test func `views are not lost among replacements`() async throws {
        try await TestApplication.with(connections: 8) { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client)
            let manager = app.client.with(token: share.manageToken)
            let statuses = try await Self.count(60) { index in
                switch index % 3 {
                case 0: try await manager.put(share.path, ShareFixtures.content(["maxViews": 1_000]))
                case 1: try await ada.client.put(share.path, ShareFixtures.content(["maxViews": 1_000]))
                default: try await app.client.get(share.path)
                }
            }
            #expect(statuses == [200: 60])
            _ = try await manager.put(share.path, ShareFixtures.content(["maxViews": 2]))
            #expect(try await Self.count(20) { try await app.client.get(share.path) } == [200: 2, 404: 18])
        }
    }

    /// How many replies of concurrent requests have which status.
    private static func count(
        _ requests: Int, _ send: @escaping @Sendable () async throws -> TestResponse
    ) async throws -> [Int: Int] {
        try await count(requests) { _ in try await send() }
    }

    private static func count(
        _ requests: Int, _ send: @escaping @Sendable (Int) async throws -> TestResponse
    ) async throws -> [Int: Int] {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for index in 0..<requests { group.addTask { try await send(index).status } }
            return try await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
    }
}
