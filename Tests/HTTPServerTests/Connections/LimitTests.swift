import HTTPCore
import HTTPServer
import SalternTesting
import Testing

@Suite struct LimitTests {
    @Test func `connections over the limit are told 503, and those far over it are closed`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.maximumConnections = 2
        try await withServer(configuration) { server in
            let first = try await server.connect()
            let second = try await server.connect()
            try await eventually { server.server.connectionCount == 2 }
            let third = try await server.connect()
            try await third.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let reply = try await third.reply()
            #expect(reply.status == 503)
            #expect(reply.text.contains(#""code":"overloaded""#))
            #expect(reply.field("Retry-After") == "1")

            var others: [RawConnection] = []
            for _ in 0..<8 { others.append(try await server.connect()) }
            try await eventually { server.server.connectionCount == 10 }
            let tooMany = try await server.connect()
            #expect(try await tooMany.readUntilClosed() == [])

            // Those that were there first are served all the same.
            for client in [first, second] {
                try await client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try await client.reply().status == 200)
            }
            for client in others { client.close() }
            try await eventually { server.server.connectionCount < 4 }
        }
    }

    @Test func `one address cannot take every connection`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.maximumConnectionsPerAddress = 3
        try await withServer(configuration) { server in
            var clients: [RawConnection] = []
            for _ in 0..<3 { clients.append(try await server.connect()) }
            try await eventually { server.server.connectionCount == 3 }
            #expect(try await server.connect().readUntilClosed() == [])
            clients.removeLast().close()
            try await eventually { server.server.connectionCount == 2 }
            let next = try await server.connect()
            try await next.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await next.reply().status == 200)
        }
    }

    @Test func `more requests at once than a loop takes on are told 503`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.maximumConcurrentRequestsPerLoop = 1
        try await withServer(configuration) { server in
            let waiting = try await server.connect()
            try await waiting.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 }
            let refused = try await server.connect()
            try await refused.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await refused.reply().status == 503)
            server.responder.release()
            #expect(try await waiting.reply().text == "waited")
            let later = try await server.connect()
            try await later.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await later.reply().status == 200)
        }
    }

    @Test func `a client that sends requests and reads no replies is not listened to any more`() async throws {
        try await withServer { server in
            let client = try await server.connect(sendTimeout: .seconds(2))
            try await client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let request = Array("GET /refuse HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            let flood = [UInt8]((0..<1_500_000).flatMap { _ in request })
            // More than the socket buffers hold: a server that went on reading would take it all.
            #expect(try await !client.send(flood))
        }
    }

    @Test func `a flood of pipelined requests is answered to the last, and others are served meanwhile`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try await server.connect(identity.clientContext())
            let other = try await server.connect(identity.clientContext())
            // Their replies fit into the socket's buffers: they are read only after all has been sent.
            let count = 2_000
            let request = Array("GET /refuse HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            try await client.send([UInt8]((0..<count).flatMap { _ in request }))
            try await other.send("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await other.reply().text == "/other")
            for _ in 0..<count { #expect(try await client.reply().status == 404) }
            // The pause that the flood made is over.
            try await client.send("GET /after HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await client.reply().text == "/after")
        }
    }
}
