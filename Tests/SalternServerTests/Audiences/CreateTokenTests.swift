import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct CreateTokenTests {
    @Test func `a token has the claims of its audience and is signed by the published key`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let reply = try await ada.client.post("/v1/tokens", ["audience": "billing"])
            #expect(reply.status == 200, "\(reply)")
            #expect(reply.fields["Cache-Control"] == "no-store, no-transform")
            #expect(reply.string("expiresAt") == "2026-01-01T00:05:00.000Z")
            let token = try OpenedToken(reply.string("token"))
            let now = app.clock.now.unixSeconds
            #expect(token.string("iss") == "https://sync.example.com")
            #expect(token.string("aud") == "billing")
            #expect(token.string("client_id") == "saltern")
            #expect(token["iat"] == .integer(now) && token["nbf"] == .integer(now))
            #expect(token["exp"] == .integer(now + 300))
            #expect(token.string("plan") == "default")
            #expect(token.string("sub")?.count == 43 && token.string("sid")?.count == 43)
            #expect(token.string("jti")?.count == 96)
            #expect(token["account_id"] == nil && token["userid"] == nil)
            #expect(!reply.text.contains(ada.id))

            let keys = try await app.client.get("/.well-known/jwks.json")
            #expect(token.header == ["alg": "ES256", "typ": "at+jwt", "kid": keys["keys.0.kid"] ?? .null])
            let x = try Base64URL.decode(try #require(keys.string("keys.0.x")).utf8)
            let y = try Base64URL.decode(try #require(keys.string("keys.0.y")).utf8)
            let key = try P256.PublicKey([4] + x + y)
            #expect(ES256.isValid(token.signature, of: token.message, by: key))
        }
    }

    @Test func `names are the same for an account and a session, and differ between audiences`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let again = try await app.logIn(ada)
            var tokens: [OpenedToken] = []
            for (client, audience) in [
                (ada.client, "billing"), (ada.client, "billing"), (again, "billing"), (again, "support"),
            ] {
                let reply = try await client.post("/v1/tokens", ["audience": .string(audience)])
                tokens.append(try OpenedToken(reply.string("token")))
            }
            #expect(tokens[0].string("sub") == tokens[1].string("sub"))
            #expect(tokens[0].string("sid") == tokens[1].string("sid"))
            #expect(tokens[0].string("sub") == tokens[2].string("sub"))
            #expect(tokens[0].string("sid") != tokens[2].string("sid"))
            #expect(tokens[2].string("sub") != tokens[3].string("sub"))
            #expect(tokens[2].string("sid") != tokens[3].string("sid"))
            #expect(Set(tokens.map { $0.string("jti") }).count == 4)
            // This audience is configured for both.
            #expect(tokens[3].string("account_id") == ada.id)
            #expect(tokens[3].string("userid") == ada.userid)
        }
    }

    @Test func `a token ends with its session at the latest`() async throws {
        var configuration = TestApplication.configuration
        configuration.sessions.lifetime = .seconds(240)
        configuration.sessions.idleTimeout = .seconds(120)
        configuration.sessions.touchInterval = .seconds(60)
        try await TestApplication.with(configuration) { app in
            let ada = try await app.register()
            let service = try await app.service("billing-1", for: "billing")
            // This use is not recorded, so the session ends 120 seconds after the log-in without another one.
            app.clock.advance(by: .seconds(30))
            let idle = try await ada.client.post("/v1/tokens", ["audience": "billing"])
            #expect(idle.string("expiresAt") == "2026-01-01T00:02:00.000Z")
            // This use is recorded.
            app.clock.advance(by: .seconds(60))
            let used = try await ada.client.post("/v1/tokens", ["audience": "billing"])
            #expect(used.string("expiresAt") == "2026-01-01T00:03:30.000Z")
            try await app.wait {
                try await ada.client.get("/v1/sessions").string("sessions.0.lastUsedAt") == "2026-01-01T00:01:30.000Z"
            }
            app.clock.advance(by: .seconds(119))
            let inspected: JSONValue = ["token": .string(try #require(used.string("token")))]
            #expect(try await service.post("/v1/tokens/inspect", inspected)["active"] == true)
            let last = try await ada.client.post("/v1/tokens", ["audience": "billing"])
            #expect(last.string("expiresAt") == "2026-01-01T00:04:00.000Z")
            app.clock.advance(by: .seconds(1))
            #expect(try await service.post("/v1/tokens/inspect", inspected)["active"] == false)
        }
    }

    @Test func `unknown audiences, restricted sessions, services and no session are refused`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let unknown = try await ada.client.post("/v1/tokens", ["audience": "push"])
            #expect(unknown.status == 422 && unknown.code == "unknown_audience")
            #expect(unknown.string("field") == "audience")
            #expect(try await ada.client.post("/v1/tokens", [:]).code == "missing_member")
            #expect(try await app.client.post("/v1/tokens", ["audience": "billing"]).status == 401)
            let service = try await app.service("billing-1", for: "billing")
            #expect(try await service.post("/v1/tokens", ["audience": "billing"]).status == 401)
            #expect(try await service.get("/v1/account").status == 401)
            // An identity token is no session.
            let token = try await ada.client.post("/v1/tokens", ["audience": "billing"]).string("token")
            #expect(try await app.client.with(token: token).get("/v1/account").status == 401)
            try await app.restrictSessions()
            #expect(try await ada.client.post("/v1/tokens", ["audience": "billing"]).status == 401)
        }
    }

    @Test func `without an issuer all routes answer 404`() async throws {
        var configuration = TestApplication.configuration
        configuration.tokens.issuer = nil
        try await TestApplication.with(configuration) { app in
            let ada = try await app.register()
            let service = try await app.service("a", for: "billing")
            for reply in [
                try await ada.client.post("/v1/tokens", ["audience": "billing"]),
                try await service.post("/v1/tokens/inspect", ["token": "a.b.c"]),
                try await app.client.get("/.well-known/jwks.json"),
                try await app.client.get("/.well-known/oauth-authorization-server"),
            ] { #expect(reply.status == 404 && reply.code == "tokens_not_offered", "\(reply)") }
        }
    }

    @Test func `a master key that opens nothing stops tokens only, and the log has the reason`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            var configuration = app.configuration
            configuration.masterKey = .random()
            try await TestApplication.with(configuration, app.database, clock: app.clock) { node in
                let reply = try await node.client.with(token: ada.client.token).post(
                    "/v1/tokens", ["audience": "billing"])
                #expect(reply.status == 503 && reply.code == "tokens_unavailable")
                #expect(reply.fields["Retry-After"] != nil)
                #expect(node.log.lines.contains { $0.contains("tokens_unavailable") })
                #expect(try await node.client.with(token: ada.client.token).get("/v1/account").status == 200)
            }
        }
    }

    @Test func `one address has a limit of its own`() async throws {
        var configuration = TestApplication.configuration
        configuration.rateLimits = RateLimits([.token: RateLimit(burst: 2, perSecond: 0.01)])
        try await TestApplication.with(configuration) { app in
            let ada = try await app.register()
            var statuses: [Int] = []
            for _ in 0..<3 { statuses.append(try await ada.client.post("/v1/tokens", ["audience": "billing"]).status) }
            #expect(statuses == [200, 200, 429])
            #expect(try await ada.client.get("/v1/account").status == 200)
        }
    }

    @Test func `the documents for services are cacheable and name the issuer`() async throws {
        try await TestApplication.with { app in
            let issuer = try await app.client.get("/.well-known/oauth-authorization-server")
            #expect(
                issuer[""] == [
                    "issuer": "https://sync.example.com",
                    "jwks_uri": "https://sync.example.com/.well-known/jwks.json",
                    "response_types_supported": [], "access_token_signing_alg_values_supported": ["ES256"],
                ])
            for reply in [issuer, try await app.client.get("/.well-known/jwks.json")] {
                #expect(reply.fields.all(named: "Cache-Control") == ["public, max-age=300, no-transform"])
                #expect(reply.fields["X-Content-Type-Options"] == "nosniff")
            }
        }
    }
}
