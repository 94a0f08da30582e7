import HTTPCore
import HTTPServer
import SalternTesting
import Testing

/// What clients do not read.
@Suite struct OutputTests {
    private static let page = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n"
    private static let smallBuffer: Int32 = 16 * 1_024

    @Test func `replies that an address does not read fill its part of the memory, and nobody else's`() async throws {
        var configuration = HTTPServerConfiguration.patient
        // An eighth is a page and a half.
        configuration.budgets = ServerBudgets(
            output: MemoryBudget(total: 24 * 1_024 * 1_024, reserve: 21 * 1_024 * 1_024))
        try await withServer(configuration) { server in
            let idler = try await server.connect(from: "127.0.0.2", receiveBuffer: Self.smallBuffer)
            try await idler.send(Self.page)
            try await eventually { configuration.budgets.output.used > 0 }

            let second = try await server.connect(from: "127.0.0.2", receiveBuffer: Self.smallBuffer)
            try await second.send(Self.page)
            let refusal = try await second.reply()
            #expect(refusal.status == 503)
            #expect(refusal.text.contains(#""code":"overloaded""#))
            #expect(refusal.field("Retry-After") == "1")
            // Short replies go on.
            try await second.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await second.reply().text == "/x")

            let other = try await server.connect(from: "127.0.0.3", receiveBuffer: Self.smallBuffer)
            try await other.send(Self.page)
            #expect(try await other.reply().body.count == TestResponder.pageByteCount)

            #expect(try await idler.reply().body.count == TestResponder.pageByteCount)
            try await second.send(Self.page)
            #expect(try await second.reply().body.count == TestResponder.pageByteCount)
            for client in [idler, second, other] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `a reply that moves is not cut off, however slowly its client reads`() async throws {
        try await undisturbed {
            var configuration = HTTPServerConfiguration.patient
            configuration.writeDeadline = .seconds(16)
            try await withServer(configuration) { server in
                let client = try await server.connect()
                try await client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
                _ = try await client.read(through: "\r\n\r\n")
                // Slower than a socket's buffers empty themselves in the time that a client has.
                var count = try #require(try await client.readSlowly(atMost: 10_000, for: 40))
                count += try await client.readUntil(count: TestResponder.largeByteCount - count)
                #expect(count == TestResponder.largeByteCount)
            }
        }
    }

    @Test func `a reply that moves too slowly is cut off`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.writeDeadline = .seconds(1)
        configuration.minimumWriteRate = 8 * 1_024 * 1_024
        try await withServer(configuration) { server in
            let client = try await server.connect(receiveBuffer: Self.smallBuffer)
            try await client.send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await eventually {
                _ = try? await client.read(atMost: 10_000)
                return server.server.connectionCount == 0
            }
        }
    }
}
