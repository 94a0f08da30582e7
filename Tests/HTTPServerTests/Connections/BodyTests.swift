import HTTPCore
import HTTPServer
import SalternTesting
import Testing

@Suite struct BodyTests {
    private static func head(_ length: Int, party: Int = 0) -> String {
        "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: \(party)\r\nContent-Length: \(length)\r\n\r\n"
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

    @Test func `bodies over what a loop may hold are told 503, small ones are not, and room comes back`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 1_600_000, loan: 1_400_000))
        try await withServer(configuration) { server in
            let first = try await server.connect()
            try await first.send(Self.head(1_000_000))
            try await first.send(Array(Self.body[..<999_999]))

            try await Self.letRead(server)
            let second = try await server.connect()
            try await second.send(Self.head(1_000_000, party: 1))
            try await second.send(Array(Self.body[..<500_000]))
            let reply = try await second.reply()
            #expect(reply.status == 503)
            #expect(reply.text.contains(#""code":"overloaded""#))
            #expect(reply.field("Connection") == "close")
            second.close()

            let small = try await server.connect()
            try await small.send(Self.head(12_000))
            try await small.send(Array(Self.body[..<12_000]))
            #expect(try await small.reply().text.hasPrefix("12000 "))

            try await first.send(Array(Self.body[999_999..<1_000_000]))
            #expect(
                try await first.reply().text == "1000000 \(TestResponder.checksum(of: Array(Self.body[..<1_000_000])))")
            try await Self.send(server, 1_000_000)

            // Also when the client goes in the middle.
            let gone = try await server.connect()
            try await gone.send(Self.head(1_000_000))
            try await gone.send(Array(Self.body[..<999_999]))
            try await Self.letRead(server)
            let before = server.server.connectionCount
            gone.close()
            try await eventually { server.server.connectionCount < before }
            try await Self.send(server, 1_000_000)
        }
    }

    @Test func `who announces much and sends little takes no room from others`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 1_600_000, loan: 1_400_000))
        try await withServer(configuration) { server in
            var clients: [RawConnection] = []
            for party in 1...50 {
                let client = try await server.connect()
                try await client.send(Self.head(8_000_000, party: party) + "x")
                clients.append(client)
            }
            try await Self.send(server, 1_000_000)
            for client in clients { client.close() }
        }
    }

    @Test func `a body beyond its sender's part has to move faster, and others have theirs meanwhile`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 1_600_000, loan: 1_400_000))
        configuration.bodyWindow = .milliseconds(300)
        // What is within a part never has to move here.
        configuration.bodyProgress = 0
        configuration.lentBodyProgress = 2_000_000
        try await withServer(configuration) { server in
            let slow = try await server.connect()
            try await slow.send(Self.head(1_000_000))
            try await slow.send(Array(Self.body[..<999_999]))
            var others: [RawConnection] = []
            for party in 1...8 {
                let client = try await server.connect()
                try await client.send(Self.head(190_000, party: party))
                try await client.send(Array(Self.body[..<189_999]))
                others.append(client)
            }
            let reply = try await slow.reply()
            #expect(reply.status == 408)
            #expect(reply.text.contains(#""code":"body_timeout""#))
            for client in others {
                try await client.send(Array(Self.body[189_999..<190_000]))
                #expect(try await client.reply().text.hasPrefix("190000 "))
                client.close()
            }
        }
    }

    /// Gives the loop turns, in each of which it also reads half a megabyte of what waits on other connections.
    private static func letRead(_ server: TestServer) async throws {
        let client = try await server.connect()
        for _ in 0..<20 {
            try await client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await client.reply().status == 200)
        }
        client.close()
    }

    private static func send(_ server: TestServer, _ count: Int) async throws {
        let client = try await server.connect()
        try await client.send(head(count))
        try await client.send(Array(body[..<count]))
        #expect(try await client.reply().text.hasPrefix("\(count) "))
        client.close()
    }
}
