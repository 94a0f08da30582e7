import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct InspectTokenTests {
    private func token(_ client: TestClient, _ audience: String = "billing") async throws -> String {
        try #require(try await client.post("/v1/tokens", ["audience": .string(audience)]).string("token"))
    }

    private func isActive(_ service: TestClient, _ token: String) async throws -> Bool {
        let reply = try await service.post("/v1/tokens/inspect", ["token": .string(token)])
        #expect(reply.status == 200, "\(reply)")
        if reply["active"] == false { #expect(reply[""] == ["active": false]) }
        return reply["active"] == true
    }

    @Test func `a service sees the claims and the present plan`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let service = try await app.service("billing-1", for: "billing")
            let token = try await token(ada.client)
            try await app.administer(
                """
                INSERT INTO saltern.plans (plan, max_items, max_item_bytes, max_bytes, max_sessions, max_shares)
                    VALUES ('business', 1, 1, 1, 1, 1);
                UPDATE saltern.accounts SET plan = 'business'
                """)
            let reply = try await service.post("/v1/tokens/inspect", ["token": .string(token)])
            let opened = try OpenedToken(token)
            #expect(reply["active"] == true && reply.string("token_type") == "Bearer")
            for name in ["iss", "sub", "aud", "client_id", "iat", "nbf", "exp", "jti", "sid"] {
                #expect(reply[name] != nil && reply[name] == opened[name], "\(name)")
            }
            #expect(reply.string("plan") == "business")
            #expect(opened.string("plan") == "default")
            #expect(reply["account_id"] == nil)
        }
    }

    @Test func `expired tokens, ended sessions and other audiences are not active`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let billing = try await app.service("billing-1", for: "billing")
            let support = try await app.service("support-1", for: "support")
            let first = try await token(ada.client)
            #expect(try await isActive(billing, first))
            #expect(try await !isActive(support, first))
            #expect(try await !isActive(billing, token(ada.client, "support")))
            app.clock.advance(by: .seconds(299))
            #expect(try await isActive(billing, first))
            app.clock.advance(by: .seconds(1))
            #expect(try await !isActive(billing, first))
            let second = try await token(ada.client)
            #expect(try await isActive(billing, second))
            #expect(try await ada.client.delete("/v1/sessions/current").status == 204)
            #expect(try await !isActive(billing, second))
        }
    }

    @Test func `changed, foreign and malformed tokens are not active`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let service = try await app.service("billing-1", for: "billing")
            let text = try await token(ada.client)
            let parts = text.split(separator: ".").map(String.init)
            let opened = try OpenedToken(text)
            let other = try SigningKey.generate(usableFrom: .distantPast)
            let keys = try #require(app.configuration.tokens.keys)
            let claims = try #require(IdentityToken(text, keys: keys))
            let none = Base64URL.encodeToString(#"{"alg":"none","typ":"at+jwt"}"#.utf8)
            var signature = opened.signature
            signature[63] ^= 1
            for bad in [
                "", ".", "..", "a.b.c", text + ".", text + "x", parts[0] + "." + parts[1], parts[1],
                "\(none).\(parts[1]).", "\(none).\(parts[1]).\(parts[2])",
                "\(parts[0]).\(parts[1]).\(Base64URL.encodeToString(signature))",
                "\(parts[0]).\(parts[1]).",
                // The header of another key above a signature of that key, and of ours.
                try claims.signed(by: other), "\(other.header).\(parts[1]).\(parts[2])",
                String(repeating: "a", count: 8_000),
            ] { #expect(try await !isActive(service, bad), "\(bad)") }
        }
    }

    @Test func `only a credential of a service inspects`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let token = try await token(ada.client)
            let stranger = "sls_" + Base64URL.encodeToString(SecureRandom.bytes(32))
            for client in [ada.client, app.client, app.client.with(token: stranger), app.client.with(token: token)] {
                let reply = try await client.post("/v1/tokens/inspect", ["token": .string(token)])
                #expect(reply.status == 401 && reply.code == "service_unauthenticated")
            }
        }
    }

    @Test func `a node with another master key in front and the next signing key inspects earlier tokens`() async throws
    {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let service = try await app.service("billing-1", for: "billing")
            let token = try await token(ada.client)
            var configuration = app.configuration
            configuration.masterKey = try configuration.masterKey.rotated()
            configuration.tokens.keys = try configuration.tokens.keys?.rotated(at: app.clock.now - SigningKeys.notice)
            try await TestApplication.with(configuration, app.database, clock: app.clock) { node in
                #expect(try await isActive(node.client.with(token: service.token), token))
                let next = try await self.token(node.client.with(token: ada.client.token))
                #expect(try OpenedToken(next).header != OpenedToken(token).header)
                // The first node has not read the new key yet.
                #expect(try await !isActive(service, next))
            }
        }
    }
}
