import Cryptography
import SalternClient
import SalternTesting
import Testing

@Suite struct CurlTransportTests {
    @Test func `another key is refused before anything is sent`() async throws {
        try await LiveServer.with { server in
            let wrong = try CurlTransport(
                server.address(pins: ["sha256//" + Base64.encodeToString(SecureRandom.bytes(32))]))
            await #expect(throws: TransportError.pinMismatch) { try await wrong.send(HTTPRequest(.get, "/v1/service")) }
            let pins = try server.pins()
            let either = try CurlTransport(server.address(pins: [try #require(pins.backup), pins.active]))
            #expect(try await either.send(HTTPRequest(.get, "/v1/service")).head.status == 200)
            // The right key of a certificate that the system does not trust.
            var address = try server.address()
            address.anchor = nil
            let unanchored = try CurlTransport(address)
            await #expect(throws: TransportError.untrustedCertificate) {
                try await unanchored.send(HTTPRequest(.get, "/v1/service"))
            }
        }
    }

    @Test func `nobody there is unreachable, and not a lost request`() async throws {
        let transport = try CurlTransport(CurlTransport.Server(base: "https://127.0.0.1:1", pins: []))
        await #expect(throws: TransportError.unreachable) { try await transport.send(HTTPRequest(.get, "/")) }
    }

    @Test func `a malformed address is refused`() {
        for base in ["http://localhost", "https://", "https://a/b", "https://a@b", "https://a?b", "https://a b"] {
            #expect(throws: TransportError.configuration(.address)) {
                try CurlTransport(CurlTransport.Server(base: base, pins: []))
            }
        }
        for pin in ["", "sha256//", "sha256//AAAA", "md5//" + Base64.encodeToString([UInt8](repeating: 0, count: 32))] {
            #expect(throws: TransportError.configuration(.pin(pin))) {
                let good = "sha256//" + Base64.encodeToString([UInt8](repeating: 0, count: 32))
                return try CurlTransport(CurlTransport.Server(base: "https://localhost", pins: [good, pin]))
            }
        }
        for anchor in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA"] {
            #expect(throws: TransportError.configuration(.certificate)) {
                try CurlTransport(
                    CurlTransport.Server(base: "https://localhost", pins: [], anchor: Array(anchor.utf8)))
            }
        }
        #expect(throws: TransportError.configuration(.rateLimit)) {
            try CurlTransport(CurlTransport.Server(base: "https://localhost", pins: []), rateLimit: 1)
        }
    }

    @Test func `a field that would end its line is refused`() async throws {
        let transport = try CurlTransport(CurlTransport.Server(base: "https://127.0.0.1:1", pins: []))
        await #expect(throws: TransportError.configuration(.request)) {
            try await transport.send(HTTPRequest(.get, "/", fields: [("X-A", "b\r\nX-C: d")]))
        }
    }

    @Test func `a reply longer than the request allows is refused`() async throws {
        try await LiveServer.with { server in
            let transport = try CurlTransport(server.address())
            await #expect(throws: TransportError.unacceptableReply) {
                try await transport.send(HTTPRequest(.get, "/v1/service", replyLimit: 10))
            }
            #expect(try await transport.send(HTTPRequest(.get, "/v1/service")).head.status == 200)
        }
    }

    @Test func `many requests at once, and cancelled ones among them, are each answered once`() async throws {
        try await LiveServer.with { server in
            let transport = try CurlTransport(server.address())
            let statuses = await withTaskGroup(of: Int?.self) { group in
                for index in 0..<100 {
                    group.addTask {
                        let request = Task { try await transport.send(HTTPRequest(.get, "/v1/health/live")) }
                        if index % 5 == 0 { request.cancel() }
                        return try? await request.value.head.status
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count == 100)
            #expect(statuses.count { $0 == 200 } >= 80)
            #expect(statuses.allSatisfy { $0 == nil || $0 == 200 })
        }
    }

    @Test func `a stream brings its head, then events, and ends when nobody listens`() async throws {
        try await LiveServer.with { server in
            let api = try server.api()
            let account = try await api.register(
                userid: "stream@example.org", passwordKey: SecretBytes(SecureRandom.secureBytes(32)),
                iterations: 10_000,
                keyring: nil)
            let events = try await api.streamChanges(account.session.token)
            var iterator = events.makeAsyncIterator()
            let first = try await iterator.next()
            #expect(first?.name == "change")
            let waiting = Task { try await api.streamChanges(account.session.token).first { _ in false } }
            waiting.cancel()
            await #expect(throws: (any Error).self) { try await waiting.value }
        }
    }
}
