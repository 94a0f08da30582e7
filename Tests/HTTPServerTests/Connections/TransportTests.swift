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
                let client = try server.connect(identity.clientContext())
                client.send("GET /\(index) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try client.reply().text == "/\(index)")
            }
        }
    }

    @Test func `several records in one flight, pipelined, are all answered`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try server.connect(identity.clientContext())
            for index in 0..<200 { client.send("GET /\(index) HTTP/1.1\r\nHost: localhost\r\n\r\n") }
            for index in 0..<200 { #expect(try client.reply().text == "/\(index)") }
        }
    }

    @Test func `a large reply survives TLS and a slow reader`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try server.connect(identity.clientContext())
            client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await Task.sleep(for: .milliseconds(100))
            #expect(try client.reply().body.count == TestResponder.largeByteCount)
        }
    }

    @Test func `plain HTTP on the TLS port gets no plain answer`() async throws {
        let identity = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            let client = try server.connect()
            client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let answer = try client.readUntilClosed()
            #expect(!String(decoding: answer, as: UTF8.self).contains("HTTP/"))
        }
    }

    @Test func `a client that expects another key does not send its request`() async throws {
        let identity = try TestIdentity()
        let other = try TestIdentity()
        try await withServer(context: identity.serverContext) { server in
            #expect(throws: TLSError.pinMismatch) { _ = try server.connect(other.clientContext()) }
        }
    }

    @Test func `a new certificate serves new connections and leaves the others alone`() async throws {
        let old = try TestIdentity()
        let new = try TestIdentity()
        try await withServer(context: old.serverContext) { server in
            let kept = try server.connect(old.clientContext())
            kept.send("GET /before HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try kept.reply().text == "/before")
            server.server.replace(new.serverContext, responders: [server.responder])
            try await eventually { (try? server.connect(new.clientContext())) != nil }
            kept.send("GET /after HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try kept.reply().text == "/after")
        }
    }

    @Test func `draining lets the current reply out and closes the rest`() async throws {
        try await withServer { server in
            let idle = try server.connect()
            let busy = try server.connect()
            busy.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually { server.responder.started == 1 && server.server.connectionCount == 2 }
            async let drained: Void = server.server.drain(deadline: .seconds(20))
            #expect(try idle.readUntilClosed() == [])
            #expect(throws: RawConnection.Failure.self) { _ = try server.connect() }
            server.responder.release()
            let reply = try busy.reply()
            #expect(reply.text == "waited")
            #expect(reply.field("Connection") == "close")
            await drained
            #expect(server.server.connectionCount == 0)
        }
    }
}
