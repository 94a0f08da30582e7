import HTTPCore
import HTTPServer
import SalternTesting
import Testing

@Suite struct StreamTests {
    private static func get(_ path: String, _ fields: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
    }

    /// Decodes chunks strictly (RFC 9112 §7.1). Returns the body and what follows it, or nil when anything is wrong.
    private static func dechunk(_ bytes: [UInt8]) -> (body: [UInt8], rest: [UInt8])? {
        var body: [UInt8] = []
        var rest = bytes[...]
        while true {
            guard let end = rest.firstIndex(of: 13), rest.dropFirst(end - rest.startIndex + 1).first == 10,
                let size = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16)
            else { return nil }
            rest = rest[(end + 2)...]
            body += rest.prefix(size)
            rest = rest.dropFirst(size)
            guard rest.starts(with: [13, 10]) else { return nil }
            rest = rest.dropFirst(2)
            if size == 0 { return (body, Array(rest)) }
        }
    }

    @Test(arguments: [false, true])
    func `a stream is sent in chunks, and the connection goes on`(usesTLS: Bool) async throws {
        let identity = try TestIdentity()
        try await withServer(context: usesTLS ? identity.serverContext : nil) { server in
            let client = try await server.connect(usesTLS ? identity.clientContext() : nil)
            try await client.send(Self.get("/stream") + Self.get("/after", "Connection: close\r\n"))
            let head = try await client.read(through: "\r\n\r\n")
            #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(head.contains("\r\nTransfer-Encoding: chunked\r\n"))
            #expect(!head.contains("Content-Length"))
            let parts = try #require(Self.dechunk(try await client.readUntilClosed()))
            #expect(parts.body == TestStreams.body)
            #expect(String(decoding: parts.rest, as: UTF8.self).hasSuffix("\r\n\r\n/after"))
        }
    }

    @Test func `a stream of nothing has only the last chunk`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.get("/stream-none", "Connection: close\r\n"))
            let reply = try await client.readUntilClosed()
            #expect(String(decoding: reply, as: UTF8.self).hasSuffix("\r\n\r\n0\r\n\r\n"))
        }
    }

    @Test func `a client of HTTP 1.0 gets a stream without chunks, ended by the connection`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            let head = try await client.read(through: "\r\n\r\n")
            #expect(head.contains("\r\nConnection: close\r\n"))
            #expect(!head.contains("Transfer-Encoding"))
            #expect(try await client.readUntilClosed() == TestStreams.body)
        }
    }

    @Test func `the reply to HEAD is the head of a stream, which is never begun`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "HEAD /endless HTTP/1.1\r\nHost: localhost\r\n\r\n" + Self.get("/next"))
            let head = try await client.reply(toHead: true)
            #expect(head.field("Transfer-Encoding") == "chunked")
            #expect(try await client.reply().text == "/next")
            #expect(server.responder.streams.count.begun == 0)
            try await eventually { server.responder.streams.count.released == 1 }
        }
    }

    @Test func `a producer is never more than the socket's buffers ahead of its client`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.get("/flood"))
            // Whatever the kernel takes has been taken when the count stands still.
            var last = -1
            try await eventually {
                try await Task.sleep(for: .milliseconds(200))
                defer { last = server.responder.streams.count.pieces }
                return last > 0 && last == server.responder.streams.count.pieces
            }
            _ = try await client.read(through: "\r\n\r\n")
            let before = server.responder.streams.count.pieces
            let piece = String(decoding: TestStreams.floodPiece, as: UTF8.self)
            // Linux gives a loopback connection 10 MiB on both sides together.
            #expect(before < 16 * 1_024 * 1_024 / TestStreams.floodPiece.count)
            for _ in 0..<(2 * before) { #expect(try await client.read(through: piece).count > piece.count) }
            #expect(server.responder.streams.count.pieces > before)
        }
    }

    @Test func `a client that takes nothing of a stream is closed`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.writeDeadline = .milliseconds(300)
        try await withServer(configuration) { server in
            let client = try await server.connect()
            try await client.send(Self.get("/flood"))
            try await eventually { server.responder.streams.count.begun == 1 }
            try await eventually { server.server.connectionCount == 0 }
            try await eventually { server.responder.streams.count.released == 1 }
            client.close()
        }
    }

    @Test(arguments: ["/endless", "/flood"])
    func `a stream whose client has gone is stopped at once`(path: String) async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.get(path))
            _ = try await client.read(through: "\r\n\r\n")
            client.close()
            if path == "/endless" {
                try await eventually { server.responder.cancelled == 1 }
                server.responder.release()
            }
            try await eventually { server.responder.streams.count.ended == 1 }
            try await eventually { server.responder.streams.count.released == 1 }
        }
    }

    @Test func `a stream that fails ends without its last chunk`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.get("/broken"))
            let reply = String(decoding: try await client.readUntilClosed(), as: UTF8.self)
            #expect(reply.hasSuffix("\r\n\r\n4\r\nhalf\r\n"))
        }
    }

    @Test func `a stream that should end has a deadline from piece to piece`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.get("/stall-in-little-time"))
            #expect(!String(decoding: try await client.readUntilClosed(), as: UTF8.self).contains("0\r\n\r\n"))
            try await eventually { server.responder.cancelled == 1 }
        }
    }

    @Test func `a stream without an end outlives its route's deadline and keeps nobody from being answered`()
        async throws
    {
        var configuration = HTTPServerConfiguration.patient
        configuration.maximumConcurrentRequestsPerLoop = 1
        try await withServer(configuration) { server in
            let client = try await server.connect()
            try await client.send(Self.get("/endless-in-little-time"))
            _ = try await client.read(through: "6\r\npiece\n\r\n")
            try await Task.sleep(for: .milliseconds(400))
            let other = try await server.connect()
            try await other.send(Self.get("/x"))
            #expect(try await other.reply().status == 200)
            server.responder.release()
            #expect(try await client.read(through: "\r\n0\r\n\r\n") == "9\r\nreleased\n\r\n0\r\n\r\n")
            try await client.send(Self.get("/again"))
            #expect(try await client.reply().text == "/again")
            // The place that the stream gave back was not given back twice.
            let waiting = try await server.connect()
            try await waiting.send(Self.get("/again"))
            #expect(try await waiting.reply().status == 200)
        }
    }

    @Test func `draining ends a stream without an end as it should be`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.lingerDeadline = .seconds(1)
        try await withServer(configuration) { server in
            let client = try await server.connect()
            try await client.send(Self.get("/endless"))
            _ = try await client.read(through: "6\r\npiece\n\r\n")
            let start = ContinuousClock.now
            await server.server.drain(deadline: .seconds(3_600))
            #expect(ContinuousClock.now - start < .seconds(1_800))
            #expect(try await client.readUntilClosed() == Array("0\r\n\r\n".utf8))
            #expect(server.responder.cancelled == 1)
        }
    }

    @Test func `draining waits for a stream that ends`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try await server.connect(identity.clientContext())
            try await client.send(Self.get("/stream"))
            let head = try await client.read(through: "\r\n\r\n")
            #expect(head.contains("chunked"))
            async let drained: Void = server.server.drain(deadline: .seconds(60))
            let parts = try #require(Self.dechunk(try await client.readUntilClosed()))
            #expect(parts.body == TestStreams.body)
            client.close()
            await drained
        }
    }
}
