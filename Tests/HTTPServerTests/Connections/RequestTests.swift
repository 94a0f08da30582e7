import HTTPCore
import HTTPServer
import SalternTesting
import Synchronization
import Testing

@Suite struct RequestTests {
    @Test func `a connection answers one request after the other`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            for path in ["/a", "/b", "/c"] {
                try await client.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let reply = try await client.reply()
                #expect(reply.status == 200)
                #expect(reply.text == path)
                // What the server announces of the connection, and nothing beyond it gets (RFC 9110 §7.6.1).
                #expect(reply.field("Connection") == "keep-alive")
                #expect(reply.field("Keep-Alive") == "timeout=300")
                #expect(reply.field("Date")?.hasSuffix(" GMT") == true)
            }
        }
    }

    @Test func `pipelined requests are answered in order, also when the first takes longest`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    + "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
                    + "GET /refuse HTTP/1.1\r\nHost: localhost\r\n\r\nGET /last HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 }
            server.responder.release()
            #expect(try await client.reply().text == "waited")
            #expect(try await client.reply().text == "hello")
            #expect(try await client.reply().status == 404)
            #expect(try await client.reply().text == "/last")
        }
    }

    @Test func `the reply to HEAD has the length and no body`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "HEAD /four HTTP/1.1\r\nHost: localhost\r\n\r\nGET /next HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let head = try await client.reply(toHead: true)
            #expect(head.field("Content-Length") == "5")
            #expect(try await client.reply().text == "/next")
        }
    }

    @Test func `Connection: close and HTTP 1.0 end the connection after the reply`() async throws {
        try await withServer { server in
            for request in [
                "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "GET /x HTTP/1.0\r\nHost: a\r\n\r\n",
            ] {
                let client = try await server.connect()
                try await client.send(request)
                let reply = try await client.reply()
                #expect(reply.text == "/x")
                #expect(reply.field("Connection") == "close")
                #expect(try await client.readUntilClosed() == [])
            }
        }
    }

    @Test func `a chunked body arrives as a whole`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsalt\r\n")
            try await client.send("3\r\nern\r\n0\r\n\r\n")
            #expect(try await client.reply().text == "saltern")
        }
    }

    @Test func `a client that expects 100 is told to go on`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await client.reply().status == 100)
            try await client.send("ok")
            #expect(try await client.reply().text == "ok")
        }
    }

    @Test func `a client that expects 100 is refused before it sends its body`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "POST /refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            let reply = try await client.reply()
            #expect(reply.status == 404)
            #expect(reply.field("Connection") == "close")
        }
    }

    @Test(arguments: ["Content-Length: 1001\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3e9\r\n"])
    func `a body over the route's limit is refused, and the client can read why`(framing: String) async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\n\(framing)")
            try await client.send([UInt8](repeating: 65, count: 100_000))
            let reply = try await client.reply()
            #expect(reply.status == 413)
            #expect(reply.text.contains(#""code":"body_too_large""#))
            #expect(reply.text.contains(#""limit":1000"#))
            #expect(reply.field("Connection") == "close")
        }
    }

    @Test func `what is not HTTP is answered with a problem, and the connection ends`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "GET /x HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let reply = try await client.reply()
            #expect(reply.status == 400)
            #expect(reply.field("Content-Type") == "application/problem+json")
            #expect(reply.field("Connection") == "close")
            #expect(try await client.readUntilClosed() == [])
        }
    }

    @Test func `a large reply arrives whole at a client that reads slowly`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(
                "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\nGET /next HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await Task.sleep(for: .milliseconds(100))
            let reply = try await client.reply()
            #expect(reply.body == [UInt8](repeating: 65, count: TestResponder.largeByteCount))
            #expect(try await client.reply().text == "/next")
        }
    }

    @Test func `what is refused midway is known by its head and its sender`() async throws {
        try await withServer { server in
            let chunked = try await server.connect()
            try await chunked.send(
                "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "1\r\nx\r\n800001\r\n")
            #expect(try await chunked.reply().status == 413)
            let malformed = try await server.connect()
            try await malformed.send(
                "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /echo HTTP/1.1\r\nHost: localhost\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\nx\r\n")
            #expect(try await malformed.reply().status == 200)
            #expect(try await malformed.reply().status == 400)
            let headless = try await server.connect()
            try await headless.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n")
            #expect(try await headless.reply().status == 200)
            #expect(try await headless.reply().status == 400)
            #expect(
                server.responder.refused.withLock { $0 } == ["/upload account(0, 3)", "/echo -", nil])
        }
    }

    @Test func `an empty line between requests is no request, and no beginning of one`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.headerDeadline = .milliseconds(50)
        try await withServer(configuration) { server in
            let client = try await server.connect()
            for _ in 0..<2 {
                try await client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx\r\n")
                #expect(try await client.reply().text == "x")
                // The line is there now: nothing waits for a head whose time could be up.
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
