import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct ServiceTests {
    @Test func `the service describes itself`() async throws {
        var configuration = TestApplication.configuration
        configuration.pins = PinSet(active: ["sha256//a"], backup: ["sha256//b"])
        try await TestApplication.with(configuration) { app in
            let reply = try await app.client.get("/v1/service")
            #expect(reply.status == 200)
            #expect(
                reply[""] == [
                    "name": "Test", "version": "1", "saltPrefix": "com.example.test:",
                    "kdf": [
                        "algorithm": "PBKDF2-HMAC-SHA256", "iterations": 600_000, "minimumIterations": 600_000,
                        "maximumIterations": 10_000_000, "keyLength": 32,
                    ],
                    "registration": "open",
                    "formats": ["rncryptor-v3", "aes-256-gcm", "aes-256-gcm-iv16", "saltern-1", "opaque"],
                    "limits": [
                        "useridBytes": 254, "keyringBytes": 65_536, "itemRequestBytes": 2_097_152, "itemsPerPage": 500,
                        "changesPerPage": 500, "batchOperations": 500, "batchRequestBytes": 8_388_608,
                    ],
                    "shares": ["formats": ["aes-256-gcm", "aes-256-gcm-iv16"], "anonymous": false],
                    "pins": ["active": ["sha256//a"], "backup": ["sha256//b"]],
                ])
        }
    }

    @Test func `every reply has its security fields and none of the server`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let replies = [
                try await app.client.get("/v1/service"), try await app.client.get("/v1/health/live"),
                try await app.client.get("/v1/health/ready"), try await ada.client.get("/v1/account"),
                try await app.client.get("/v1/account"), try await app.client.get("/nowhere"),
                try await app.client.delete("/v1/service"), try await app.client.post("/v1/kdf", [:]),
                try await app.client.get("/v1/service?x=1"), try await ada.client.delete("/v1/sessions/current"),
            ]
            #expect(replies.map(\.status) == [200, 200, 200, 200, 401, 404, 405, 422, 400, 204])
            for reply in replies {
                #expect(reply.fields["Cache-Control"] == "no-store, no-transform")
                #expect(reply.fields["X-Content-Type-Options"] == "nosniff")
                #expect(reply.fields["X-Request-Id"]?.utf8.count == 32)
                #expect(reply.fields["Server"] == nil)
                guard reply.status >= 400 else { continue }
                #expect(reply.fields["Content-Type"] == "application/problem+json")
                #expect(reply.string("requestId") == reply.fields["X-Request-Id"])
                #expect(reply.integer("status") == reply.status)
            }
            #expect(Set(replies.map { $0.fields["X-Request-Id"] }).count == replies.count)
            #expect(replies[6].fields["Allow"] == "GET, HEAD")
        }
    }

    @Test(arguments: [
        ("api.example.org", true), ("API.example.org:8443", true), ("example", true), ("xn--bcher-kva.example.", true),
        ("1.2.3.4.example", true), ("localhost.example.org", true), ("localhost", false), ("LocalHost:8443", false),
        ("localhost.", false),
        ("app.localhost:1", false), ("127.0.0.1", false), ("192.0.2.7:8443", false), ("[::1]:8443", false),
        ("[2001:db8::1]", false), ("2130706433", false), ("0x7f.1", false), ("127.0.0.1.", false), ("", false),
    ])
    func `browsers are asked to insist on HTTPS for names alone`(host: String, isAsked: Bool) async throws {
        try await TestApplication.with { app in
            let replies = [
                try await app.client.get("/v1/service", ["Host": host]),
                try await app.client.get("/nowhere", ["host": host]),
                try await app.client.get("/v1/account", ["HOST": host]),
            ]
            for reply in replies {
                #expect(reply.fields["Strict-Transport-Security"] == (isAsked ? "max-age=31536000" : nil))
            }
        }
        var configuration = TestApplication.configuration
        configuration.strictTransportSecurity = nil
        try await TestApplication.with(configuration) { app in
            let reply = try await app.client.get("/v1/service", ["Host": host])
            #expect(reply.fields["Strict-Transport-Security"] == nil)
        }
    }

    @Test func `a query parameter that a route does not know is named`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            for target in ["/v1/account?limt=3", "/v1/items?limit=3&limt=4", "/v1/changes?limt="] {
                let reply = try await ada.client.get(target)
                #expect(reply.status == 400)
                #expect(reply.code == "unknown_parameter")
                #expect(reply.string("field") == "limt")
            }
        }
    }

    @Test func `a chunked request without content is one without a body`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register()
            let chunked = ["Transfer-Encoding": "chunked"]
            #expect(try await ada.client.get("/v1/account", chunked).status == 200)
            let item = try await ada.createItem()
            #expect(try await ada.client.delete(item, chunked.merging(["If-Match": "*"]) { $1 }).status == 200)
            let restored = try await ada.client.send(
                .post, item + "/restore", fields: chunked.merging(["If-Match": "*"]) { $1 })
            #expect(restored.status == 200)
            for (method, path) in [(HTTPMethod.put, item), (.put, item + "/body"), (.delete, "/v1/account")] {
                let type = path == item + "/body" ? "application/octet-stream" : "application/json"
                let reply = try await ada.client.send(
                    method, path, fields: chunked.merging(["If-Match": "*", "Content-Type": type]) { $1 })
                #expect(reply.status == 400, "\(method) \(path)")
                #expect(reply.code == "missing_body", "\(method) \(path)")
                // Without content there is nothing that has a type.
                let gzip = ["Content-Type": type, "Content-Encoding": "gzip"]
                for others in [[:], ["Content-Type": "text/plain"], gzip] {
                    let untyped = try await ada.client.send(
                        method, path, fields: chunked.merging(["If-Match": "*"]) { $1 }.merging(others) { $1 })
                    #expect(untyped.code == "missing_body", "\(method) \(path) \(others)")
                }
            }
            #expect(try await ada.client.delete("/v1/sessions/current", chunked).status == 204)
        }
    }

    @Test func `unauthenticated routes take 8 KiB, and every body has to be JSON`() async throws {
        try await TestApplication.with { app in
            for path in ["/v1/kdf", "/v1/sessions"] {
                let long = try await app.client.send(.post, path, body: [UInt8](repeating: 0x20, count: 8_193))
                #expect(long.status == 413)
                #expect(long.integer("limit") == 8_192)
                let form = try await app.client.send(
                    .post, path, fields: ["Content-Type": "application/x-www-form-urlencoded"], body: Array("a=b".utf8))
                #expect(form.status == 415)
                #expect(try await app.client.send(.post, path).status == 400)
                #expect(try await app.client.send(.post, path, body: Array("{".utf8)).code == "malformed_json")
                #expect(
                    try await app.client.send(.post, path, body: Array(#"{"userid":"a","userid":"b"}"#.utf8)).code
                        == "duplicate_member")
            }
        }
    }

    @Test func `a request leaves one line, with the route's template and the account`() async throws {
        try await TestApplication.with { app in
            let ada = try await app.register("ada-canary@example.org")
            let path = try await ada.createItem()
            let reply = try await ada.client.get(path)
            let line = try #require(app.log.lines.last)
            #expect(line.contains(#""event":"request""#))
            #expect(line.contains(#""route":"GET /v1/items/{id}""#))
            #expect(line.contains(#""status":200"#))
            #expect(line.contains(#""accountId":"\#(ada.id)""#))
            #expect(line.contains(#""requestId":"\#(try #require(reply.fields["X-Request-Id"]))""#))

            // An account that was only claimed is not logged.
            _ = try await ada.client.with(token: ada.client.token.map { String($0.dropLast(2)) + "AA" }).get(path)
            #expect(app.log.lines.last?.contains("accountId") == false)
            _ = try await app.client.get("/v1/items/canary/canary")
            #expect(app.log.lines.last?.contains(#""route":"unmatched""#) == true)
            // A body that is refused while it comes belongs to its route, and to the account if that was asked about.
            let long = [UInt8](repeating: 0x20, count: 25 * 1_048_576)
            let chunked = ["Transfer-Encoding": "chunked"]
            #expect(try await ada.client.send(.post, "/v1/items/batch", fields: chunked, body: long).status == 413)
            #expect(app.log.lines.last?.contains(#""route":"POST /v1/items/batch""#) == true)
            #expect(app.log.lines.last?.contains(#""accountId":"\#(ada.id)""#) == true)
            #expect(try await app.client.send(.post, "/v1/sessions", fields: chunked, body: long).status == 413)
            #expect(app.log.lines.last?.contains(#""route":"POST /v1/sessions""#) == true)

            let secrets = [
                "canary", try #require(ada.client.token), ada.passwordKey, path.dropFirst(10).description,
                try #require(reply.string("body")),
            ]
            for line in app.log.lines {
                for secret in secrets { #expect(!line.contains(secret), "\(line)") }
            }
        }
    }

    @Test func `the line of a request names the trace that it belongs to`() async throws {
        let trace = ["traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]
        let expected = #""traceId":"4bf92f3577b34da6a3ce929d0e0e4736","parentSpanId":"00f067aa0ba902b7"}"#
        try await TestApplication.with { app in
            let ada = try await app.register()
            let path = try await ada.createItem()
            for (client, path) in [
                (app.client, "/v1/service"), (app.client, "/v1/service?x=1"), (app.client, "/nowhere"),
                (app.client, "/v1/account"), (ada.client, "/v1/account"), (ada.client, path),
            ] {
                _ = try await client.get(path, trace)
                #expect(app.log.lines.last?.contains(expected) == true, "\(path)")
                _ = try await client.get(path)
                #expect(app.log.lines.last?.contains("traceId") == false, "\(path)")
            }
        }
    }

    @Test func `every configuration mistake is named`() {
        var configuration = TestApplication.configuration
        configuration.saltPrefix = ""
        configuration.name = ""
        configuration.kdf.minimumIterations = 9_999
        configuration.kdf.defaultIterations = 9_998
        configuration.sessions.idleTimeout = .zero
        configuration.items.requestLimit = 1
        #expect(configuration.findings.count == 6)
    }
}
