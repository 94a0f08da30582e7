import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ThrottlingTests {
    @Test func `delays double from the fifth failure on, up to the longest delay`() {
        let expected: [Duration] = [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60].map { .seconds($0) }
        #expect((1...11).map(AttemptPolicy.delay) == expected)
        #expect([12, 35, 36, 100, .max].map(AttemptPolicy.delay) == Array(repeating: .seconds(60), count: 5))
        let now = Timestamp(unixSeconds: 1_767_225_600)
        #expect(AttemptPolicy.blocks(failingAt: now) == expected.map { now + $0 })
    }

    private static func configuration(_ limits: String, proxies: [String] = []) throws -> ServiceConfiguration {
        var configuration = TestApplication.configuration
        configuration.rateLimits = try #require(RateLimits(limits))
        configuration.trustedProxies = TrustedProxies(try proxies.map { try #require(AddressBlock($0)) })
        return configuration
    }

    /// What costs next to nothing: answers that are the same for everybody, from memory.
    private static let free = ["/v1/service", "/v1/health/", "/s/", "/j/", "/assets/", "/.well-known/"]

    @Test func `every route that does work is paid for by a bucket`() async throws {
        try await TestApplication.with { app in
            for route in app.routes {
                let path = route.template.description
                let isFree = Self.free.contains { $0.hasSuffix("/") ? path.hasPrefix($0) : path == $0 }
                #expect((route.metadata.rateClass == nil) == isFree, "\(route.metadata.name)")
                if route.metadata.needsSession {
                    #expect(
                        [.account, .registration, .token].contains(route.metadata.rateClass), "\(route.metadata.name)")
                }
            }
        }
    }

    @Test func `an address that asks too often is told when to come back, whatever it sends`() async throws {
        try await TestApplication.with(try Self.configuration("lookup=2/0.5")) { app in
            let body: JSONValue = ["userid": "ada"]
            #expect(try await app.client.post("/v1/kdf", body).status == 200)
            // A request that is refused for something else has been paid for too.
            #expect(try await app.client.post("/v1/kdf", ["name": "ada"]).status == 422)
            for body in [TestClient.document(body), [UInt8](repeating: 0x20, count: 100_000), []] {
                let reply = try await app.client.send(.post, "/v1/kdf", body: body)
                #expect(reply.status == 429)
                #expect(reply.code == "rate_limited")
                #expect(reply.fields["Retry-After"] == "2")
            }
            #expect(try await app.client.get("/v1/health/live").status == 200)
            #expect(try await app.client.get("/v1/service").status == 200)
            // Other classes have other buckets.
            #expect(try await app.register().client.get("/v1/account").status == 200)
            app.clock.advance(by: .seconds(2))
            #expect(try await app.client.post("/v1/kdf", body).status == 200)
        }
    }

    @Test func `a request with a session pays before its token is looked at`() async throws {
        try await TestApplication.with(try Self.configuration("account=3/1")) { app in
            let ada = try await app.register()
            for _ in 0..<2 { #expect(try await ada.client.get("/v1/account").status == 200) }
            #expect(try await app.client.with(token: "slt_nonsense").get("/v1/account").status == 401)
            #expect(try await ada.client.get("/v1/account").status == 429)
            #expect(try await app.client.with(token: "slt_nonsense").get("/v1/account").status == 429)
        }
    }

    private func ask(_ app: TestApplication, _ forwarded: String?) async throws -> Int {
        let fields = forwarded.map { ["X-Forwarded-For": $0] } ?? [:]
        return try await app.client.post("/v1/kdf", ["userid": "ada"], fields).status
    }

    @Test func `behind a proxy the client's address counts, and nobody can choose it`() async throws {
        let configuration = try Self.configuration("lookup=1/0.01", proxies: ["192.0.2.0/24"])
        try await TestApplication.with(configuration) { app async throws in
            #expect(try await ask(app, "198.51.100.1") == 200)
            #expect(try await ask(app, "198.51.100.1") == 429)
            #expect(try await ask(app, "198.51.100.2") == 200)
            #expect(try await ask(app, "203.0.113.9, 198.51.100.1") == 429)
            #expect(try await ask(app, "2001:db8::1") == 200)
            #expect(try await ask(app, "2001:db8::2") == 429)
            // What cannot be read counts for the proxy.
            #expect(try await ask(app, "nonsense") == 200)
            #expect(try await ask(app, "rubbish") == 429)
            #expect(try await ask(app, nil) == 429)
        }
        try await TestApplication.with(try Self.configuration("lookup=1/0.01")) { app in
            for (address, status) in [("198.51.100.1", 200), ("198.51.100.2", 429)] {
                let reply = try await app.client.post("/v1/kdf", ["userid": "ada"], ["X-Forwarded-For": address])
                #expect(reply.status == status)
            }
        }
    }
}
