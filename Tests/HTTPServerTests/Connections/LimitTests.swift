import HTTPCore
import HTTPServer
import SalternTesting
import Testing

@Suite struct LimitTests {
    @Test func `connections over the limit are told 503, and those far over it are closed`() async throws {
        var configuration = HTTPServerConfiguration()
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
        var configuration = HTTPServerConfiguration()
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
        var configuration = HTTPServerConfiguration()
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
}
