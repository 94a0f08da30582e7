import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct WebOriginsTests {
    private static let origin = "https://app.example.com"
    private static let other = "https://other.example.com"

    private static var configuration: ServiceConfiguration {
        var configuration = TestApplication.configuration
        configuration.origins = WebOrigins(
            [WebOrigin(origin), WebOrigin("https://two.example.com:8443")].compactMap(\.self))
        return configuration
    }

    private func expectReadable(_ reply: TestResponse, _ origin: String = WebOriginsTests.origin) {
        #expect(reply.fields.all(named: "Access-Control-Allow-Origin") == [origin], "\(reply)")
        let exposed = [
            "Date", "ETag", "Retry-After", "Saltern-Collection", "Saltern-Format", "Saltern-Iterations",
            "Saltern-Views-Left", "X-Request-Id",
        ]
        #expect(reply.fields["Access-Control-Expose-Headers"] == exposed.joined(separator: ", "))
        #expect(reply.fields["Access-Control-Allow-Credentials"] == nil)
        #expect(reply.fields.all(named: "Vary").contains("Origin"))
    }

    private func expectUnreadable(_ reply: TestResponse) {
        #expect(!reply.fields.contains { $0.name.hasPrefix("Access-Control") }, "\(reply)")
    }

    @Test func `every reply of the API is readable for an allowed page, errors included`() async throws {
        try await TestApplication.with(Self.configuration, acquireTimeout: .seconds(10)) { app in
            let ada = try await app.register()
            let fields = ["Origin": Self.origin]
            expectReadable(try await ada.client.get("/v1/account", fields))
            expectReadable(
                try await ada.client.get("/v1/account", ["Origin": "https://two.example.com:8443"]),
                "https://two.example.com:8443")
            for (status, reply) in [
                (401, try await app.client.get("/v1/account", fields)),
                (404, try await app.client.get("/v1/none", fields)),
                (405, try await app.client.delete("/v1/service", fields)),
                (
                    415,
                    try await app.client.send(
                        .post, "/v1/kdf", fields: fields.merging(["Content-Type": "text/plain"]) { $1 }, body: [1])
                ),
                (422, try await app.client.post("/v1/kdf", [:], fields)),
                (400, try await app.client.get("/v1/service?x=1", fields)),
            ] {
                #expect(reply.status == status)
                expectReadable(reply)
            }
            try await app.closeDatabase()
            let away = try await ada.client.get("/v1/account", fields)
            #expect(away.status == 503)
            expectReadable(away)
            try await app.openDatabase()
        }
    }

    @Test func `other origins, pages and services get no field`() async throws {
        try await TestApplication.with(Self.configuration) { app in
            for origin in [
                Self.other, "null", "https://app.example.com.evil.example", "http://app.example.com", "*", "",
            ] {
                let reply = try await app.client.get("/v1/service", ["Origin": origin])
                expectUnreadable(reply)
                #expect(reply.fields["Vary"] == "Origin")
            }
            let plain = try await app.client.get("/v1/service")
            expectUnreadable(plain)
            #expect(plain.fields["Vary"] == "Origin")
            let fields = ["Origin": Self.origin]
            let service = try await app.service("billing-1", for: "billing")
            for reply in [
                try await app.client.get("/s/\(ShareID.random().text)", fields),
                try await app.client.get("/assets/share.js", fields),
                try await app.client.get("/.well-known/jwks.json", fields),
                try await app.client.get("/nothing", fields),
                try await service.post("/v1/tokens/inspect", ["token": ""], fields),
                try await service.post("/v1/tokens/%69nspect", ["token": ""], fields),
                try await app.client.get("/v1/tokens/inspect", fields),
                try await app.client.post("/v1/service-events/lease", [:], fields),
            ] {
                expectUnreadable(reply)
                #expect(!reply.fields.all(named: "Vary").contains("Origin"))
            }
        }
    }

    @Test func `a preflight is answered for allowed origins and paths that exist`() async throws {
        try await TestApplication.with(Self.configuration) { app in
            let fields = ["Origin": Self.origin, "Access-Control-Request-Method": "PUT"]
            let item = "/v1/items/\(Fixtures.uuid())"
            let reply = try await app.client.send(.options, item, fields: fields)
            #expect(reply.status == 204)
            expectReadable(reply)
            #expect(reply.fields["Access-Control-Allow-Methods"] == "GET, HEAD, POST, PUT, PATCH, DELETE")
            #expect(
                reply.fields["Access-Control-Allow-Headers"]
                    == "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Passkey-Assertion, Vault-Head"
            )
            #expect(reply.fields["Access-Control-Max-Age"] == "600")
            #expect(try await app.client.send(.options, "/v1/none", fields: fields).status == 404)
            let plain = try await app.client.send(.options, item, fields: ["Origin": Self.origin])
            #expect(plain.status == 405)
            let foreign = try await app.client.send(
                .options, item, fields: fields.merging(["Origin": Self.other]) { $1 })
            #expect(foreign.status == 405)
            expectUnreadable(foreign)
            #expect(try await app.client.send(.options, "/v1/%61ccount", fields: fields).status == 204)
            for path in [
                "/v1/tokens/inspect", "/v1/tokens/%69nspect", "/%76%31/tokens/inspect", "/v1/service%2Devents/lease",
            ] {
                let inspect = try await app.client.send(.options, path, fields: fields)
                #expect(inspect.status == 405, "\(path)")
                expectUnreadable(inspect)
            }
        }
    }

    @Test func `without origins no reply varies`() async throws {
        try await TestApplication.with { app in
            let reply = try await app.client.get("/v1/service", ["Origin": Self.origin])
            expectUnreadable(reply)
            #expect(reply.fields["Vary"] == nil)
            let preflight = try await app.client.send(
                .options, "/v1/service", fields: ["Origin": Self.origin, "Access-Control-Request-Method": "GET"])
            #expect(preflight.status == 405)
        }
    }

    @Test func `a server that starts answers preflights, and its 503 is readable`() throws {
        let application = StartingApplication(
            configuration: Self.configuration,
            log: Log(minimumLevel: .error, sink: CapturedLog()) { UTCTimestamp(microsecondsSinceEpoch: 0) },
            metrics: RequestMetrics())
        let fields = [(name: "Origin", value: Self.origin), (name: "Access-Control-Request-Method", value: "GET")]
        let client = ClientAddress(address: "192.0.2.1", port: 1)
        guard
            case .refuse(let preflight) = application.admit(
                RequestHead(method: .options, target: "/v1/account", fields: fields), from: client),
            case .refuse(let reply) = application.admit(
                RequestHead(method: .get, target: "/v1/account", fields: fields), from: client)
        else {
            Issue.record("nothing is admitted")
            return
        }
        #expect(preflight.status == .noContent)
        for path in ["/v1/tokens/inspect", "/v1/tokens/%69nspect"] {
            guard
                case .refuse(let refusal) = application.admit(
                    RequestHead(method: .options, target: path, fields: fields), from: client)
            else {
                Issue.record("nothing is admitted")
                continue
            }
            #expect(refusal.status == .serviceUnavailable, "\(path)")
            #expect(refusal.fields["Access-Control-Allow-Origin"] == nil, "\(path)")
        }
        #expect(reply.status == .serviceUnavailable)
        #expect(reply.fields["Access-Control-Allow-Origin"] == Self.origin)
        let unread = application.refusal(
            .headerTooLarge(limit: 1), ofUnread: UnreadHead(path: "/v1/account", origin: Self.origin), from: client)
        #expect(unread.fields["Access-Control-Allow-Origin"] == Self.origin)
    }

    @Test(arguments: [
        "https://app.example.com", "https://app.example.com:8443", "https://localhost", "https://192.0.2.1",
        "https://[2001:db8::1]:8443", "https://a",
    ])
    func `exact origins are taken`(_ text: String) { #expect(WebOrigin(text)?.description == text) }

    @Test(arguments: [
        "", "*", "null", "http://app.example.com", "https://", "https://App.example.com", "https://app.example.com/",
        "https://app.example.com:443", "https://app.example.com:0", "https://app.example.com:65536",
        "https://app.example.com:08443", "https://*.example.com", "https://a..b", "https://-a", "https://a b",
        "https://user@app.example.com", "https://app.example.com?x", "https://bücher.example",
    ])
    func `anything else is no origin`(_ text: String) { #expect(WebOrigin(text) == nil) }
}
