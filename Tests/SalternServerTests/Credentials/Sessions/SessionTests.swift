import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct SessionTests {
    @Test func `people list their sessions`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            app.clock.advance(by: .seconds(120))
            let phone = try await app.logIn(ada, device: "Ada's phone")
            let list = try await phone.get("/v1/sessions")
            #expect(list.array("sessions")?.count == 2)
            #expect(list.string("sessions.0.id") == ada.sessionID)
            #expect(list.bool("sessions.0.current") == false)
            #expect(list["sessions.0.device"] == nil)
            #expect(list.string("sessions.0.createdAt") == "2026-01-01T00:00:00.000Z")
            #expect(list.bool("sessions.1.current") == true)
            #expect(list.string("sessions.1.device.name") == "Ada's phone")
            #expect(list.string("sessions.1.createdAt") == "2026-01-01T00:02:00.000Z")
            #expect(list.string("sessions.1.lastUsedAt") == "2026-01-01T00:02:00.000Z")
            #expect(list.string("sessions.1.expiresAt") == "2027-01-01T00:02:00.000Z")
            #expect(!list.text.contains("slt_"))
        }
    }

    @Test func `ending a session is immediate, on every node`() async throws {
        try await TestApplication.with { app in
            try await TestApplication.with(app.configuration, app.database, clock: app.clock) { other in
                let ada = try await app.register()
                let second = try await app.logIn(ada)
                let onOther = other.client.with(token: second.token)
                #expect(try await onOther.get("/v1/account").status == 200)
                #expect(try await second.delete("/v1/sessions/\(ada.sessionID)").status == 204)
                #expect(try await ada.client.get("/v1/account").status == 401)
                #expect(try await second.delete("/v1/sessions/\(ada.sessionID)").status == 404)

                #expect(try await second.delete("/v1/sessions/current").status == 204)
                #expect(try await onOther.get("/v1/account").status == 401)
                #expect(try await second.delete("/v1/sessions/current").status == 401)
            }
        }
    }

    @Test func `ending the others keeps the one that asks`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            let others = [try await app.logIn(ada), try await app.logIn(ada)]
            let reply = try await ada.client.delete("/v1/sessions")
            #expect(reply.status == 200)
            #expect(reply.integer("ended") == 2)
            for other in others { #expect(try await other.get("/v1/account").status == 401) }
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 1)
            #expect(try await bob.client.get("/v1/account").status == 200)
        }
    }

    @Test func `nobody ends another's session`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let bob = try await app.register()
            #expect(try await bob.client.delete("/v1/sessions/\(ada.sessionID)").status == 404)
            #expect(try await ada.client.get("/v1/account").status == 200)
            #expect(try await bob.client.delete("/v1/sessions/nonsense").code == "invalid_parameter")
        }
    }

    @Test func `a session ends when it is idle for too long`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<2 {
                app.clock.advance(by: .seconds(30 * 86_400 - 1))
                #expect(try await ada.client.get("/v1/account").status == 200)
                try await ada.useIsRecorded(in: app)
            }
            app.clock.advance(by: .seconds(30 * 86_400))
            #expect(try await ada.client.get("/v1/account").status == 401)
        }
    }

    @Test func `a session ends with its lifetime, however much it is used`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for _ in 0..<18 {
                app.clock.advance(by: .seconds(20 * 86_400))
                #expect(try await ada.client.get("/v1/account").status == 200)
                try await ada.useIsRecorded(in: app)
            }
            app.clock.advance(by: .seconds(5 * 86_400 - 1))
            #expect(try await ada.client.get("/v1/account").status == 200)
            app.clock.advance(by: .seconds(1))
            #expect(try await ada.client.get("/v1/account").status == 401)
        }
    }

    @Test func `last use is recorded at most once a minute`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let expected = [(59, "00:00:00"), (1, "00:01:00"), (59, "00:01:00"), (301, "00:07:00")]
            for (seconds, time) in expected {
                app.clock.advance(by: .seconds(seconds))
                _ = try await ada.client.get("/v1/items")
                // The server records it in the background.
                try await eventually(every: .milliseconds(50)) {
                    try await ada.client.get("/v1/sessions").string("sessions.0.lastUsedAt")
                        == "2026-01-01T\(time).000Z"
                }
            }
        }
    }

    @Test func `a request takes the look-up of its session and one statement more`() async throws {
        try await TestApplication.with(connections: 1) { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            // The first replacement in ten minutes also keeps a version.
            #expect(try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]).status == 200)
            func executed(_ request: () async throws -> TestResponse) async throws -> [String: Int64] {
                let before = try await app.executions()
                #expect(try await request().status == 200)
                // The use of a session is recorded later, whoever asks meanwhile.
                return try await app.executions().difference(from: before).filter { $0.key != "TouchSession" }
            }
            #expect(try await executed { try await ada.client.get(path) } == ["Authenticate": 1, "FindItem>": 1])
            #expect(
                try await executed { try await ada.client.put(path, ItemTests.item(), ["If-Match": "*"]) }
                    == ["ReplaceItem>": 1])
            app.clock.advance(by: .seconds(60))
            #expect(try await executed { try await ada.client.get(path) } == ["Authenticate": 1, "FindItem>": 1])
            #expect(try await executed { try await ada.client.get(path) } == ["Authenticate": 1, "FindItem>": 1])
        }
    }

    @Test func `whatever is no live token gets the same answer on every route, and changes nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            let ended = try await app.logIn(ada)
            _ = try await ended.delete("/v1/sessions/current")
            let token = try #require(ada.client.token)
            let other = try await app.register()
            let foreign = try #require(other.client.token)
            // Ada's account with another's secret.
            let mixed = try Base64URL.encodeToString(
                Array(Base64URL.decode(token.dropFirst(4).utf8.map { $0 }).prefix(16))
                    + Array(Base64URL.decode(foreign.dropFirst(4).utf8.map { $0 }).suffix(32)))
            let tokens = [
                nil, "", "x", String(token.dropLast()), token + "A", "slt_" + mixed, ended.token,
                token.replacing("slt_", with: "SLT_"), token.uppercased(), token + ", Bearer " + token,
            ]
            for bad in tokens {
                for route in app.routes where route.metadata.needsSession {
                    let target = RouteBodies.path(
                        route.template.description, id: path.dropFirst("/v1/items/".count))
                    let body = RouteBodies.body(for: route.metadata.name)
                    let takesBytes =
                        route.metadata.name.hasPrefix("PUT ") && route.metadata.name.hasSuffix("/items/{id}/body")
                    var sent: [UInt8]?
                    if takesBytes {
                        sent = SecureRandom.bytes(64)
                    } else if route.body != .none {
                        sent = TestClient.document(body)
                    }
                    let type = takesBytes ? "application/octet-stream" : "application/json"
                    let reply = try await app.client.with(token: bad).send(
                        route.method, takesBytes ? target + "?format=opaque" : target,
                        fields: ["If-Match": "*", "Content-Type": type], body: sent)
                    #expect(reply.status == 401, "\(route.metadata.name) \(bad ?? "nil")")
                    #expect(reply.code == "unauthenticated")
                    #expect(reply.fields["WWW-Authenticate"] == "Bearer")
                }
            }
            #expect(try await ada.client.get(path).integer("revision") == 1)
            #expect(try await ada.client.get("/v1/account").integer("usage.sessions") == 1)
        }
    }

    @Test func `the scheme's case does not matter, the scheme does`() async throws {
        try await TestApplication.with { app in
            let token = try #require(try await app.register().client.token)
            for (value, status) in [
                ("Bearer \(token)", 200), ("bearer \(token)", 200), ("BEARER \(token)", 200), (token, 401),
                ("Bearer  \(token)", 200), ("Basic \(token)", 401), ("Bearer\t\(token)", 401), ("Bearer\(token)", 401),
            ] {
                #expect(try await app.client.get("/v1/account", ["Authorization": value]).status == status, "\(value)")
            }
        }
    }

    @Test func `a token in a URL is refused`() async throws {
        try await TestApplication.with { app in
            let token = try #require(try await app.register().client.token)
            for name in ["token", "access_token", "authorization"] {
                let reply = try await app.client.get("/v1/account?\(name)=\(token)")
                #expect(reply.status == 400)
                #expect(reply.code == "unknown_parameter")
                #expect(!reply.text.contains(token))
            }
        }
    }

    @Test func `a stored session opens nothing`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let token = try #require(ada.client.token)
            let secret = try Base64URL.decode(Array(token.dropFirst(4).utf8)).suffix(32)
            let hash = SHA256.hash(Array(secret)).bytes
            let stored = try #require(try await app.execute(StoredHash()).first)
            #expect(stored == hash)
            let forged =
                try "slt_"
                + Base64URL.encodeToString(Base64URL.decode(Array(token.dropFirst(4).utf8)).prefix(16) + stored)
            #expect(try await app.client.with(token: forged).get("/v1/account").status == 401)
        }
    }
}
