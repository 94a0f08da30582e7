import Dispatch
import HTTPServer
import SalternTesting
import Testing

/// What a server that goes away does with connections that have asked for nothing yet.
@Suite struct DrainTests {
    private static let request = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private static func configuration(_ change: (inout HTTPServerConfiguration) -> Void) -> HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration.patient
        change(&configuration)
        return configuration
    }

    /// Waits until nobody is let in any more, and begins with the stop.
    private func isStopping(_ server: TestServer) async -> Bool { (try? await server.connect()) == nil }

    @Test func `a new connection is answered once, whether it has shaken hands or not`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let silent = try await server.connect(identity.clientContext())
            let gate = DispatchSemaphore(value: 0)
            let context = try identity.clientContext()
            async let late = RawConnection.open(port: server.server.address.port, context: context) { gate.wait() }
            try await eventually { server.server.connectionCount == 2 }
            async let drained: Void = server.server.drain(deadline: .seconds(300))
            try await eventually { await isStopping(server) }
            gate.signal()
            for client in [silent, try await late] {
                try await client.send(Self.request)
                let reply = try await client.reply()
                #expect(reply.text == "/x")
                #expect(reply.field("Connection") == "close")
                client.close()
            }
            await drained
        }
    }

    @Test func `one that has been there for as long as a handshake may take is closed at once`() async throws {
        try await withServer(Self.configuration { $0.handshakeDeadline = .zero }) { server in
            let client = try await server.connect()
            try await eventually { server.server.connectionCount == 1 }
            await server.server.drain(deadline: .seconds(300))
            #expect(try await client.readUntilClosed() == [])
        }
    }

    @Test func `one that asks for nothing holds up the stop until it is no longer new`() async throws {
        try await withServer(Self.configuration { $0.handshakeDeadline = .milliseconds(500) }) { server in
            let client = try await server.connect()
            try await eventually { server.server.connectionCount == 1 }
            await server.server.drain(deadline: .seconds(300))
            #expect(try await client.readUntilClosed() == [])
        }
    }

    @Test(arguments: [true, false])
    func `one that asks for nothing holds up the stop for the grace at most`(speaksTLS: Bool) async throws {
        let identity = speaksTLS ? try TestIdentity() : nil
        let configuration = Self.configuration { $0.drainGrace = .milliseconds(300) }
        try await withServer(configuration, context: identity?.serverContext) { server in
            // With TLS it is one that never shakes hands.
            let client = try await server.connect()
            try await eventually { server.server.connectionCount == 1 }
            await server.server.drain(deadline: .seconds(300))
            #expect(try await client.readUntilClosed() == [])
        }
    }

    @Test func `whoever sits there gives way to who comes, where that is wanted`() async throws {
        let configuration = Self.configuration {
            $0.maximumConnectionsPerAddress = 3
            $0.maximumConnections = 4
            $0.replacesOldestIdle = true
        }
        try await withServer(configuration) { server in
            let busy = try await server.connect()
            try await busy.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 }
            // Of the same address, and then of others.
            for source in ["127.0.0.1", "127.1.0.1", "127.2.0.1", "127.3.0.1"] {
                var idle: [RawConnection] = []
                for _ in 0..<5 { idle.append(try await server.connect(from: source)) }
                let client = try await server.connect(from: source)
                try await client.send(Self.request)
                #expect(try await client.reply().text == "/x")
                #expect(try await idle[0].readUntilClosed() == [])
                #expect(server.server.connectionCount <= 4)
            }
            server.responder.release()
            #expect(try await busy.reply().text == "waited")
        }
    }

    @Test func `of those that are accepted at once, the first to come is the first to give way`() async throws {
        let configuration = Self.configuration {
            $0.maximumConnectionsPerAddress = 3
            $0.replacesOldestIdle = true
        }
        try await withServer(configuration, accepts: false) { server in
            var clients: [RawConnection] = []
            for _ in 0..<12 { clients.append(try await server.connect()) }
            await server.server.startAccepting()
            for client in clients.dropLast(3) { #expect(try await client.readUntilClosed() == []) }
            for client in clients.suffix(3) {
                try await client.send(Self.request)
                #expect(try await client.reply().text == "/x")
            }
        }
    }

    @Test func `what a server has bound it does not accept from before it is told to`() async throws {
        try await withServer(accepts: false) { server in
            let client = try await server.connect()
            try await client.send(Self.request)
            #expect(server.server.connectionCount == 0)
            await server.server.startAccepting()
            #expect(try await client.reply().text == "/x")
        }
    }
}
