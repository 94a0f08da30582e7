import HTTPCore
import HTTPServer
import SalternTesting
import Synchronization
import Testing

/// Deadlines are hundreds of milliseconds here; a slow machine makes the tests slower, not wrong.
@Suite struct DeadlineTests {
    private static let quick: HTTPServerConfiguration = {
        var configuration = HTTPServerConfiguration()
        configuration.headerDeadline = .milliseconds(300)
        configuration.idleDeadline = .milliseconds(300)
        configuration.handshakeDeadline = .milliseconds(300)
        configuration.writeDeadline = .milliseconds(300)
        configuration.lingerDeadline = .milliseconds(100)
        return configuration
    }()

    @Test func `a client that drips its header block is told 408`() async throws {
        try await withServer(Self.quick) { server in
            let client = try server.connect()
            for byte in "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".utf8 {
                guard client.send([byte]) else { break }
                try await Task.sleep(for: .milliseconds(20))
            }
            let reply = try client.reply()
            #expect(reply.status == 408)
            #expect(reply.text.contains(#""code":"header_timeout""#))
        }
    }

    @Test func `a client that drips its body is told 408`() async throws {
        try await withServer(Self.quick) { server in
            let client = try server.connect()
            client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n")
            for _ in 0..<40 {
                guard client.send("a") else { break }
                try await Task.sleep(for: .milliseconds(20))
            }
            let reply = try client.reply()
            #expect(reply.status == 408)
            #expect(reply.text.contains(#""code":"body_timeout""#))
        }
    }

    @Test func `a handler that takes too long is cancelled, and the client is told 503`() async throws {
        try await withServer(Self.quick) { server in
            let client = try server.connect()
            client.send("GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let reply = try client.reply()
            #expect(reply.status == 503)
            #expect(reply.text.contains(#""code":"handler_timeout""#))
            #expect(reply.field("Retry-After") == "1")
            #expect(server.responder.cancelled == 1)
        }
    }

    @Test func `an idle connection is closed without a word`() async throws {
        try await withServer(Self.quick) { server in
            let fresh = try server.connect()
            #expect(try fresh.readUntilClosed() == [])
            let used = try server.connect()
            used.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try used.reply()
            #expect(try used.readUntilClosed() == [])
        }
    }

    @Test func `a client that never shakes hands is closed`() async throws {
        let identity = try TestIdentity()
        try await withServer(Self.quick, context: identity.serverContext) { server in
            let silent = try server.connect()
            #expect(try silent.readUntilClosed() == [])
            let dripping = try server.connect()
            dripping.send([0x16, 0x03, 0x01])
            #expect(try dripping.readUntilClosed() == [])
            #expect(server.server.connectionCount == 0)
        }
    }

    @Test func `a client that never reads its reply is closed`() async throws {
        try await withServer(Self.quick) { server in
            let client = try server.connect()
            client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.server.statistics.acceptedConnections.load(ordering: .relaxed) == 1 }
            try await eventually { server.server.connectionCount == 0 }
            #expect(try client.readUntilClosed().count < TestResponder.largeByteCount)
        }
    }

    @Test func `a request whose client has gone is cancelled`() async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 }
            client.close()
            try await eventually { server.responder.cancelled == 1 }
        }
    }
}
