import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ShareThrottleTests {
    private static func configuration(_ limits: [RateClass: RateLimit]) -> ServiceConfiguration {
        var configuration = TestApplication.configuration
        configuration.rateLimits = RateLimits(limits)
        configuration.shares.acceptsAnonymous = true
        return configuration
    }

    @Test func `an address that misses too often is stopped before anything is looked up`() async throws {
        let limits: [RateClass: RateLimit] = [.shareMiss: RateLimit(burst: 5, perSecond: 0.1)]
        try await TestApplication.with(Self.configuration(limits)) { app in
            let ada = try await app.register()
            let share = try await TestShare(ada.client, ShareFixtures.content(["maxViews": 100]))
            let manager = app.client.with(token: share.manageToken)
            let wrong = app.client.with(token: TestShare.manageToken())
            // Hits cost nothing of it.
            for _ in 0..<10 { #expect(try await app.client.get(share.path).status == 200) }
            let unknown = "/v1/shares/\(ShareID.random().text)"
            #expect(try await app.client.get(unknown).status == 404)
            #expect(try await app.client.get("/v1/shares/x").status == 404)
            #expect(try await app.client.send(.head, unknown).status == 404)
            #expect(try await wrong.put(share.path, ShareFixtures.content()).status == 404)
            #expect(try await wrong.delete(share.path).status == 404)
            for path in [share.path, unknown, "/v1/shares/x"] {
                for reply in [
                    try await app.client.get(path), try await app.client.send(.head, path),
                    try await manager.put(path, ShareFixtures.content()), try await manager.delete(path),
                ] {
                    #expect(reply.status == 429)
                    #expect(reply.code == "rate_limited")
                    #expect(reply.fields["Retry-After"] == "10")
                }
            }
            // Whoever has a session is known.
            #expect(try await ada.client.get("/v1/shares").integer("shares.0.views") == 10)
            app.clock.advance(by: .seconds(10))
            #expect(try await app.client.get(share.path).integer("viewsLeft") == 89)
        }
    }

    @Test func `an address makes only so many shares without an account`() async throws {
        let limits: [RateClass: RateLimit] = [.anonymousShare: RateLimit(burst: 2, perSecond: 0.01)]
        try await TestApplication.with(Self.configuration(limits)) { app in
            let ada = try await app.register()
            let content = ShareFixtures.content(["expiresAt": "2026-01-02T00:00:00Z"])
            let statuses = [
                try await app.client.post("/v1/shares", content).status,
                try await app.client.post("/v1/shares", content).status,
                try await app.client.post("/v1/shares", content).status,
                try await ada.client.post("/v1/shares", content).status,
            ]
            #expect(statuses == [201, 201, 429, 201])
        }
    }

    @Test func `the standard figures cover every kind of request for a share`() {
        #expect(RateLimits.standard.limits[.shareMiss] != nil)
        #expect(RateLimits.standard.limits[.anonymousShare] != nil)
        #expect(GuestRule.managersOfShares.rateClass == .share)
        #expect(GuestRule.strangers(bodyLimit: 1).rateClass == .anonymousShare)
    }
}
