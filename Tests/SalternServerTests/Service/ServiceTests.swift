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
                #expect(reply.fields["Cache-Control"] == "no-store")
                #expect(reply.fields["X-Content-Type-Options"] == "nosniff")
                #expect(reply.fields["Strict-Transport-Security"] == "max-age=31536000")
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
