import EventLoop
import HTTPCore
import SalternTesting
import Testing

@testable import HTTPServer

/// The one rule for closing, as clients see it.
@Suite struct ClosingTests {
    @Test(arguments: [
        "GET /refuse HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /refuse HTTP/1.0\r\nHost: a\r\n\r\n",
    ])
    func `a refusal is the last reply to a client that wants no other`(request: String) async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(request)
            let reply = try await client.reply()
            #expect(reply.status == 404)
            #expect(reply.field("Connection") == "close")
            #expect(try await client.readUntilClosed() == [])
        }
    }

    @Test func `a client of HTTP 1.0 that wants to stay is told that it may, also with a refusal`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            for path in ["/refuse", "/x"] {
                try await client.send("GET \(path) HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
                #expect(try await client.reply().field("Connection") == "keep-alive")
            }
        }
    }

    @Test(arguments: [
        ("HEAD /refuse HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        ("HEAD /x HTTP/1.1\r\n\r\n", 400),
        ("HEAD /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", 413),
        ("HEAD /hang HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 503),
        ("HEAD /x HTTP/1.1\r\nHost: localhost\r\nExpect: the worst\r\n\r\n", 417),
    ])
    func `a refusal of HEAD has no body`(request: String, status: Int) async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(request)
            let reply = try await client.reply(toHead: true)
            #expect(reply.status == status)
            #expect(reply.field("Connection") == "close")
            #expect(try await client.readUntilClosed() == [])
        }
    }

    @Test func `a refusal for lack of room leaves a connection open whose request was read`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.maximumConcurrentRequestsPerLoop = 1
        try await withServer(configuration) { server in
            let waiting = try await server.connect()
            try await waiting.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 }
            let client = try await server.connect()
            try await client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await client.reply().status == 503)
            server.responder.release()
            #expect(try await waiting.reply().text == "waited")
            try await client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await client.reply().text == "/x")
        }
    }

    @Test func `an idle connection is told of its end in TLS`() async throws {
        let identity = try TestIdentity()
        var configuration = HTTPServerConfiguration.patient
        configuration.idleDeadline = .seconds(1)
        try await withServer(configuration, context: identity.serverContext) { server in
            let client = try await server.connect(identity.clientContext())
            #expect(try await client.readUntilClosed() == [])
            #expect(client.wasToldOfTheEnd)
        }
    }

    @Test func `a reply that is being written when the server stops is written to its end`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try await client.read(through: "\r\n\r\n")
            async let drained: Void = server.server.drain(deadline: .seconds(300))
            try await eventually { (try? await server.connect()) == nil }
            #expect(try await client.readUntilClosed().count == TestResponder.largeByteCount)
            client.close()
            await drained
        }
    }

    @Test func `an unfinished body of a stranger does not hold up the stop, one of somebody known does`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.drainGrace = .milliseconds(300)
        try await withServer(configuration) { server in
            let stranger = try await server.connect()
            try await stranger.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhal")
            let headless = try await server.connect()
            try await headless.send("POST /echo HT")
            let known = try await server.connect()
            try await known.send(
                "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await known.reply().status == 100)
            async let drained: Void = server.server.drain(deadline: .seconds(300))
            for client in [stranger, headless] {
                let reply = try await client.reply()
                #expect(reply.status == 503)
                #expect(reply.field("Connection") == "close")
                client.close()
            }
            try await known.send([UInt8](repeating: 65, count: 100_000))
            let reply = try await known.reply()
            #expect(reply.text.hasPrefix("100000 "))
            #expect(reply.field("Connection") == "close")
            known.close()
            await drained
        }
    }

    @Test func `a second server on the same address is refused`() async throws {
        try await withServer(loops: 2) { server in
            let loop = try EventLoop(name: "second")
            try loop.start()
            defer { loop.stop() }
            await #expect(throws: ListenError.self) {
                _ = try await HTTPServer(
                    address: server.server.address, context: nil, loops: [(loop, server.responder)])
            }
            // The first one's loops share it all the same.
            var clients: [RawConnection] = []
            for _ in 0..<64 {
                let client = try await server.connect()
                try await client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try await client.reply().status == 200)
                clients.append(client)
            }
            #expect(await server.server.connectionsByLoop.allSatisfy { $0 > 0 })
            for client in clients { client.close() }
        }
    }
}
