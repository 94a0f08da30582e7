import HTTPCore
import HTTPServer
import SalternTesting
import Testing
import TransportSecurity

@Suite struct TransportTests {
    @Test func `requests and replies travel over TLS on every loop`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext, loops: 2) { server in
            for index in 0..<16 {
                let client = try await server.connect(identity.clientContext())
                try await client.send("GET /\(index) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try await client.reply().text == "/\(index)")
            }
        }
    }

    @Test func `several records in one flight, pipelined, are all answered`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try await server.connect(identity.clientContext())
            for index in 0..<200 { try await client.send("GET /\(index) HTTP/1.1\r\nHost: localhost\r\n\r\n") }
            for index in 0..<200 { #expect(try await client.reply().text == "/\(index)") }
        }
    }

    @Test func `a large reply survives TLS and a slow reader`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try await server.connect(identity.clientContext())
            try await client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await Task.sleep(for: .milliseconds(100))
            #expect(try await client.reply().body.count == TestResponder.largeByteCount)
        }
    }

    @Test func `plain HTTP on the TLS port gets no plain answer`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try await server.connect()
            try await client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = try await client.readUntilClosed()
            #expect(!String(decoding: answer, as: UTF8.self).contains("HTTP/"))
        }
    }

    @Test func `a client that expects another key does not send its request`() async throws {
        let identity = try TestIdentity()
        let other = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            await #expect(throws: TLSError.pinMismatch) { _ = try await server.connect(other.clientContext()) }
        }
    }

    @Test func `a new certificate serves new connections and leaves the others alone`() async throws {
        let old = try TestIdentity()
        let new = try TestIdentity()
        try await withServer(context: old.serverContext) { server in
            let kept = try await server.connect(old.clientContext())
            try await kept.send("GET /before HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await kept.reply().text == "/before")
            server.server.replace(new.serverContext, responders: [server.responder])
            try await eventually { (try? await server.connect(new.clientContext())) != nil }
            try await kept.send("GET /after HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await kept.reply().text == "/after")
        }
    }

    @Test func `draining lets the current reply out and closes the rest`() async throws {
        try await withServer { server in
            let idle = try await server.connect()
            try await idle.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await idle.reply().text == "/x")
            let busy = try await server.connect()
            try await busy.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 && server.server.connectionCount == 2 }
            async let drained: Void = server.server.drain(deadline: .seconds(60))
            #expect(try await idle.readUntilClosed() == [])
            // A program that another test starts has a copy of the listening socket until it runs.
            try await eventually { (try? await server.connect()) == nil }
            server.responder.release()
            let reply = try await busy.reply()
            #expect(reply.text == "waited")
            #expect(reply.field("Connection") == "close")
            busy.close()
            await drained
            #expect(server.server.connectionCount == 0)
        }
    }
}
