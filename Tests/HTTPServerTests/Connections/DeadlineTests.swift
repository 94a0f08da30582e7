import HTTPCore
import HTTPServer
import SalternTesting
import Synchronization
import Testing

/// Only the deadline that a test is about is short: a slow machine makes these tests slower, not wrong.
@Suite struct DeadlineTests {
    private static func configuration(_ change: (inout HTTPServerConfiguration) -> Void) -> HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration.patient
        change(&configuration)
        return configuration
    }

    private static let short = Duration.milliseconds(300)

    @Test func `a client that drips its header block is told 408`() async throws {
        try await withServer(Self.configuration { $0.headerDeadline = Self.short }) { server in
            let client = try await server.connect()
            for byte in "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".utf8 {
                guard try await client.send([byte]) else { break }
                try await Task.sleep(for: .milliseconds(20))
            }
            let reply = try await client.reply()
            #expect(reply.status == 408)
            #expect(reply.text.contains(#""code":"header_timeout""#))
        }
    }

    @Test func `a client that drips its body is told 408`() async throws {
        try await withServer(Self.configuration { $0.bodyWindow = Self.short }) { server in
            let client = try await server.connect()
            try await client.send("POST /drip HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n")
            for _ in 0..<80 {
                guard try await client.send("a") else { break }
                try await Task.sleep(for: .milliseconds(20))
            }
            let reply = try await client.reply()
            #expect(reply.status == 408)
            #expect(reply.text.contains(#""code":"body_timeout""#))
        }
    }

    @Test func `a handler that takes too long is cancelled, and the client is told 503`() async throws {
        try await withServer(Self.configuration { _ in }) { server in
            let client = try await server.connect()
            try await client.send("GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let reply = try await client.reply()
            #expect(reply.status == 503)
            #expect(reply.text.contains(#""code":"handler_timeout""#))
            #expect(reply.field("Retry-After") == "1")
            #expect(server.responder.cancelled == 1)
        }
    }

    @Test func `an idle connection is closed without a word`() async throws {
        try await withServer(Self.configuration { $0.idleDeadline = Self.short }) { server in
            let fresh = try await server.connect()
            #expect(try await fresh.readUntilClosed() == [])
        }
    }

    @Test func `a connection that is idle after a request is closed`() async throws {
        try await withServer(Self.configuration { $0.idleDeadline = Self.short }) { server in
            // On a busy machine a connection may be idle for too long before its first request: then another one is.
            for _ in 0..<100 {
                let client = try await server.connect()
                guard try await client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                    let reply = try? await client.reply()
                else { continue }
                #expect(reply.status == 200)
                #expect(try await client.readUntilClosed() == [])
                return
            }
            Issue.record("no connection lived until its reply")
        }
    }

    @Test func `a client that never shakes hands is closed`() async throws {
        let identity = try TestIdentity()
        try await withServer(Self.configuration { $0.handshakeDeadline = Self.short }, context: identity.serverContext)
        { server in
            let silent = try await server.connect()
            #expect(try await silent.readUntilClosed() == [])
            let dripping = try await server.connect()
            try await dripping.send([0x16, 0x03, 0x01])
            #expect(try await dripping.readUntilClosed() == [])
            try await eventually { server.server.connectionCount == 0 }
        }
    }

    @Test func `a client that never reads its reply is closed`() async throws {
        try await withServer(Self.configuration { $0.writeDeadline = Self.short }) { server in
            let client = try await server.connect()
            try await client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.server.statistics.acceptedConnections.load(ordering: .relaxed) == 1 }
            try await eventually { server.server.connectionCount == 0 }
            #expect(try await client.readUntilClosed().count < TestResponder.largeByteCount)
        }
    }

    @Test func `a request whose client has gone is cancelled`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 }
            client.close()
            try await eventually { server.responder.cancelled == 1 }
        }
    }
}
