import HTTPCore
import HTTPServer
import SalternTesting
import Testing

@Suite struct BodyTests {
    private static func head(_ length: Int, memoryOwner: Int = 0) -> String {
        "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: \(memoryOwner)\r\nContent-Length: \(length)\r\n\r\n"
    }

    private static let body = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }
    private static let answer = "2000000 \(TestResponder.checksum(of: body))"

    @Test(arguments: [false, true])
    func `a large body arrives as it was sent, and the next request after it`(usesTLS: Bool) async throws {
        let identity = try TestIdentity()
        try await withServer(context: usesTLS ? identity.serverContext : nil) { server in
            let client = try await server.connect(usesTLS ? identity.clientContext() : nil)
            try await client.send(
                Array(Self.head(Self.body.count).utf8) + Self.body
                    + Array("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            #expect(try await client.reply().text == Self.answer)
            #expect(try await client.reply().text == "/next")
        }
    }

    @Test func `a large body in chunks arrives as it was sent`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            var bytes = Array("POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
            var rest = Self.body[...]
            for size in [1, 100_000, 65_536, 1_834_463] {
                bytes += Array("\(String(size, radix: 16))\r\n".utf8) + rest.prefix(size) + [13, 10]
                rest = rest.dropFirst(size)
            }
            #expect(rest.isEmpty)
            bytes += Array("0\r\n\r\nGET /next HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            try await client.send(bytes)
            #expect(try await client.reply().text == Self.answer)
            #expect(try await client.reply().text == "/next")
        }
    }

    @Test func `who announces much and sends little takes no room from others`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 1_600_000, reserve: 1_400_000))
        try await withServer(configuration) { server in
            var clients: [RawConnection] = []
            for memoryOwner in 1...50 {
                let client = try await server.connect()
                try await client.send(Self.head(8_000_000, memoryOwner: memoryOwner) + "x")
                clients.append(client)
            }
            try await Self.send(server, 1_000_000)
            for client in clients { client.close() }
        }
    }

    private static func send(_ server: TestServer, _ count: Int) async throws {
        let client = try await server.connect()
        try await client.send(head(count))
        try await client.send(Array(body[..<count]))
        #expect(try await client.reply().text.hasPrefix("\(count) "))
        client.close()
    }
}
