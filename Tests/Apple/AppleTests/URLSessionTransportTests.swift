import Cryptography
import Foundation
import Synchronization
import Testing

@testable import SalternClient

/// What the transport makes of a session's events. The sessions are Foundation's on Linux; there is no TLS.
@Suite(.serialized) struct URLSessionTransportTests {
    private func transport(_ server: PlainServer) throws -> URLSessionTransport {
        let trust = try #require(ServerTrust(PinnedServer(base: server.base, pins: [])))
        return URLSessionTransport(to: server.base, trust)
    }

    @Test func `a request has the token, the fields and the body that it should, and its reply is whole`() async throws
    {
        let seen = Mutex("")
        let server = try PlainServer { connection in
            seen.withLock { $0 = connection.head }
            connection.write("HTTP/1.1 201 Created\r\nETag: \"7\"\r\nSet-Cookie: a=b\r\nContent-Length: 5\r\n\r\nwhole")
        }
        let transport = try transport(server)
        for _ in 0..<2 {
            let reply = try await transport.send(
                HTTPRequest(
                    .put, "/v1/items/a%20b?x=y", fields: [("If-Match", "\"6\""), ("Content-Type", "application/json")],
                    token: SecureBytes(copying: "abc".utf8), body: SecureBytes(copying: "{}".utf8)))
            #expect(reply.head.status == 201 && reply.head["etag"] == "\"7\"" && reply.body == Array("whole".utf8))
            let head = seen.withLock { $0 }
            #expect(head.hasPrefix("PUT /v1/items/a%20b?x=y HTTP/1.1\r\n"))
            for field in [
                "Authorization: Bearer abc", "If-Match: \"6\"", "Content-Type: application/json", "Content-Length: 2",
                "Accept-Encoding: identity",
            ] {
                #expect(head.contains("\r\n\(field)\r\n"), "\(field) in \(head)")
            }
            #expect(!head.contains("Cookie"))
        }
    }

    @Test func `a redirect is a reply`() async throws {
        let count = Mutex(0)
        let server = try PlainServer { connection in
            count.withLock { $0 += 1 }
            connection.write("HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
        }
        #expect(try await transport(server).send(HTTPRequest(.get, "/")).head.status == 302)
        #expect(count.withLock { $0 } == 1)
    }

    @Test func `a body longer than the request allows is refused while it comes`() async throws {
        let sent = Mutex(0)
        let server = try PlainServer { connection in
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = "10000\r\n" + String(repeating: "x", count: 0x10000) + "\r\n"
            while connection.write(chunk), sent.withLock({ $0 }) < 1 << 30 { sent.withLock { $0 += 0x10000 } }
        }
        let transport = try transport(server)
        await #expect(throws: TransportError.unacceptableReply) { try await transport.send(HTTPRequest(.get, "/")) }
        #expect(sent.withLock { $0 } < 1 << 30)
    }

    @Test func `fields longer than a reply may have are refused`() async throws {
        let server = try PlainServer { connection in
            connection.write("HTTP/1.1 200 OK\r\n")
            for index in 0..<70 { connection.write("X-\(index): " + String(repeating: "x", count: 4_000) + "\r\n") }
            connection.write("Content-Length: 0\r\n\r\n")
        }
        let transport = try transport(server)
        await #expect(throws: TransportError.unacceptableReply) { try await transport.send(HTTPRequest(.get, "/")) }
    }

    @Test func `a time that is over and a cancelled task each end a request`() async throws {
        let server = try PlainServer { connection in
            if connection.head.hasPrefix("GET /trickle") {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while connection.write("x") { usleep(100_000) }
            } else {
                sleep(5)
            }
        }
        let transport = try transport(server)
        await #expect(throws: TransportError.timedOut) {
            try await transport.send(HTTPRequest(.get, "/trickle", timeout: .milliseconds(500)))
        }
        let task = Task { try await transport.send(HTTPRequest(.get, "/trickle")) }
        try await Task.sleep(for: .milliseconds(200))
        task.cancel()
        await #expect(throws: TransportError.cancelled) { try await task.value }
    }

    @Test func `nobody there is unreachable, a connection that ends is lost, and a bad field is never sent`()
        async throws
    {
        let server = try PlainServer { connection in
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
        }
        let transport = try transport(server)
        await #expect(throws: TransportError.connectionLost) { try await transport.send(HTTPRequest(.get, "/")) }
        let trust = try #require(ServerTrust(PinnedServer(base: "", pins: [])))
        let nobody = URLSessionTransport(to: "http://127.0.0.1:1", trust)
        await #expect(throws: TransportError.unreachable) { try await nobody.send(HTTPRequest(.get, "/")) }
        await #expect(throws: TransportError.configuration(.request)) {
            try await transport.send(HTTPRequest(.get, "/", fields: [("X-A", "b\r\nX-C: d")]))
        }
    }

    @Test func `a malformed address is refused`() {
        for base in ["http://localhost", "https://", "https://a/b", "https://a@b", "https://a?b", "https://a b"] {
            #expect(throws: TransportError.configuration(.address)) {
                try URLSessionTransport(PinnedServer(base: base, pins: []))
            }
        }
    }

    // No more than a reader has room for: Foundation's tasks on Linux crash when they are suspended.
    @Test func `a stream brings its head, then its body`() async throws {
        let piece = SecureRandom.bytes(1 << 16)
        let server = try PlainServer { connection in
            connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            for _ in 0..<3 { connection.write(piece) }
        }
        let transport = try transport(server)
        let stream = try await transport.stream(HTTPRequest(.get, "/"))
        #expect(stream.head["Content-Type"] == "text/event-stream")
        var received: [UInt8] = []
        for try await bytes in stream.body { received += bytes }
        #expect(received == piece + piece + piece)
        withExtendedLifetime(transport) {}
    }

    @Test func `a stream that nobody reads any more ends`() async throws {
        let hasEnded = Mutex(false)
        let server = try PlainServer { connection in
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            while connection.write("x") { usleep(10_000) }
            hasEnded.withLock { $0 = true }
        }
        let transport = try transport(server)
        for try await _ in try await transport.stream(HTTPRequest(.get, "/")).body { break }
        for _ in 0..<200 where !hasEnded.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(20)) }
        #expect(hasEnded.withLock { $0 })
        // Not because its transport has gone.
        withExtendedLifetime(transport) {}
    }
}
