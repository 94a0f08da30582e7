import HTTPCore
import HTTPServer
import SalternTesting
import Testing

/// Long bodies are read from those only who are known.
@Suite struct IdentificationTests {
    private static func head(_ length: Int, memoryOwner: String, _ fields: String = "") -> String {
        "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: \(memoryOwner)\r\nContent-Length: \(length)\r\n\(fields)\r\n"
    }

    @Test func `a long body of nobody is refused before it is sent`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.head(98_305, memoryOwner: "nobody", "Expect: 100-continue\r\n"))
            let reply = try await client.reply()
            #expect(reply.status == 401)
            #expect(reply.field("Connection") == "close")
            let chunked = try await server.connect()
            try await chunked.send(
                "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: nobody\r\nTransfer-Encoding: chunked\r\n"
                    + "Expect: 100-continue\r\n\r\n")
            #expect(try await chunked.reply().status == 401)
            #expect(server.responder.identified == 2)
        }
    }

    @Test func `a short body is read without asking who sends it`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.head(98_304, memoryOwner: "nobody"))
            try await client.send([UInt8](repeating: 65, count: 98_304))
            #expect(try await client.reply().text.hasPrefix("98304 "))
            #expect(server.responder.identified == 0)
        }
    }

    @Test func `a body that is sent along waits until its sender is known`() async throws {
        try await withServer { server in
            let client = try await server.connect()
            try await client.send(Self.head(1_000_000, memoryOwner: "waiting"))
            let body = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 >> 2) }
            async let sent = client.send(body + Array("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            try await eventually { server.responder.started == 1 }
            server.responder.release()
            #expect(try await sent)
            #expect(try await client.reply().text == "1000000 \(TestResponder.checksum(of: body))")
            #expect(try await client.reply().text == "/next")
        }
    }

    @Test(arguments: [[97_999], [40_000, 57_999], [4_097, 32_767, 61_135], [65_537, 32_462]])
    func `the memory of a body does not depend on the pieces in which it arrives`(pieces: [Int]) async throws {
        let configuration = HTTPServerConfiguration.patient
        let budget = configuration.budgets.unidentifiedBodies
        try await withServer(configuration) { server in
            let client = try await server.connect()
            try await client.send(Self.head(98_000, memoryOwner: "7"))
            var (sent, capacity) = (0, 4_096)
            for piece in pieces {
                try await client.send([UInt8](repeating: 65, count: piece))
                sent += piece
                while capacity < sent { capacity *= 2 }
                try await eventually(within: .seconds(60)) { budget.used == min(capacity, 98_000) }
            }
            try await client.send([65])
            #expect(try await client.reply().text.hasPrefix("98000"))
            client.close()
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `strangers of one address fill their own part of the memory, and nobody else's`() async throws {
        var configuration = HTTPServerConfiguration.patient
        // An eighth, the part of one address, holds two and a half bodies.
        configuration.budgets = ServerBudgets(unidentifiedBodies: MemoryBudget(total: 2_000_000, reserve: 0))
        try await withServer(configuration) { server in
            var strangers: [RawConnection] = []
            for _ in 0..<4 {
                let stranger = try await server.connect(from: "127.0.0.2")
                try await stranger.send(Self.head(98_000, memoryOwner: "nobody"))
                try await stranger.send([UInt8](repeating: 65, count: 97_999))
                strangers.append(stranger)
                // One after the other, so that the first two have the room.
                guard strangers.count <= 2 else { continue }
                try await eventually { configuration.budgets.unidentifiedBodies.used == 98_000 * strangers.count }
            }
            try await eventually { server.responder.identified > 0 }
            #expect(configuration.budgets.unidentifiedBodies.used <= 250_000)
            for stranger in strangers.dropFirst(2) { #expect(try await stranger.reply().status == 401) }

            // Somebody who is known is served at the same address, and anybody at another.
            for (address, memoryOwner) in [("127.0.0.2", "7"), ("127.0.0.3", "nobody")] {
                let client = try await server.connect(from: address)
                try await client.send(Self.head(98_000, memoryOwner: memoryOwner))
                try await client.send([UInt8](repeating: 65, count: 98_000))
                #expect(try await client.reply().text.hasPrefix("98000 "))
                client.close()
            }
            for stranger in strangers { stranger.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `a body that finds no room when it comes counts for its sender, who is looked up then`() async throws {
        var configuration = HTTPServerConfiguration.patient
        // An eighth, the part of one address, holds one body and a half.
        configuration.budgets = ServerBudgets(unidentifiedBodies: MemoryBudget(total: 1_200_000, reserve: 0))
        try await withServer(configuration) { server in
            var clients: [RawConnection] = []
            for memoryOwner in 0..<16 {
                let client = try await server.connect()
                try await client.send(Self.head(98_000, memoryOwner: "\(memoryOwner)", "Expect: 100-continue\r\n"))
                #expect(try await client.reply().status == 100)
                clients.append(client)
            }
            #expect(configuration.budgets.unidentifiedBodies.used == 0)
            let body = (0..<98_000).map { UInt8(truncatingIfNeeded: $0 >> 2) }
            let holdsOne = { configuration.budgets.unidentifiedBodies.used == 98_000 }
            try await clients[0].send(Array(body.dropLast()))
            try await eventually(holdsOne)
            for client in clients.dropFirst() { try await client.send(Array(body.dropLast())) }
            try await eventually { server.responder.identified == 15 && holdsOne() }
            for client in clients {
                try await client.send([body[97_999]] + Array("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
                #expect(try await client.reply().text == "98000 \(TestResponder.checksum(of: body))")
                #expect(try await client.reply().text == "/next")
                client.close()
            }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `a body that comes in chunks goes on where its sender was looked up`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.unidentifiedBodyLimit = 8_388_608
        configuration.budgets = ServerBudgets(unidentifiedBodies: MemoryBudget(total: 400_000, reserve: 0))
        try await withServer(configuration) { server in
            let client = try await server.connect()
            try await client.send(
                "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: 3\r\nTransfer-Encoding: chunked\r\n\r\n")
            let body = (0..<120_000).map { UInt8(truncatingIfNeeded: $0 >> 3) }
            var sent: [UInt8] = []
            for start in stride(from: 0, to: body.count, by: 6_000) {
                sent += Array("1770\r\n".utf8) + body[start..<start + 6_000] + Array("\r\n".utf8)
            }
            try await client.send(sent + Array("0\r\n\r\nGET /next HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            #expect(try await client.reply().text == "120000 \(TestResponder.checksum(of: body))")
            #expect(try await client.reply().text == "/next")
            #expect(server.responder.identified == 1)
            client.close()
            try await server.expectNothingHeld(configuration)
        }
    }

    private static func guestHead(_ length: Int) -> String {
        "POST /guest HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(length)\r\n\r\n"
    }

    /// Somebody who is served at once, whatever others do.
    private func expectServed(_ server: TestServer, from address: String) async throws {
        let guest = try await server.connect(from: address)
        try await guest.send(Self.guestHead(98_000))
        try await guest.send([UInt8](repeating: 65, count: 98_000))
        #expect(try await guest.reply().text == "98000")
        guest.close()
    }

    @Test func `bodies that are announced and not sent keep nobody out`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.budgets = ServerBudgets(unidentifiedBodies: MemoryBudget(total: 800_000, reserve: 0))
        try await withServer(configuration) { server in
            var others: [RawConnection] = []
            for address in 2..<12 {
                for head in [Self.head(98_000, memoryOwner: "nobody"), Self.guestHead(98_000)] {
                    let other = try await server.connect(from: "127.0.0.\(address)")
                    try await other.send(head)
                    // So much of each is free.
                    try await other.send([UInt8](repeating: 65, count: 4_096))
                    others.append(other)
                }
            }
            try await expectServed(server, from: "127.0.0.2")
            try await expectServed(server, from: "127.0.0.12")
            #expect(server.responder.identified == 0)
            for other in others { other.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `who began first loses his room to others: guests are told to come again, and the rest looked up`()
        async throws
    {
        var configuration = HTTPServerConfiguration.patient
        // Eight parts, of one body each; six may be taken. Nobody is safe for a moment.
        configuration.budgets = ServerBudgets(
            unidentifiedBodies: MemoryBudget(total: 800_000, reserve: 0, moment: .zero))
        try await withServer(configuration) { server in
            let heads =
                [Self.head(98_000, memoryOwner: "7"), Self.head(98_000, memoryOwner: "nobody")]
                + Array(repeating: Self.guestHead(98_000), count: 8)
            var others: [RawConnection] = []
            for (number, head) in heads.enumerated() {
                let address = "127.0.0.\(number + 2)"
                let network = try #require(IPAddress(address)).network
                let other = try await server.connect(from: address)
                try await other.send(head)
                try await other.send([UInt8](repeating: 65, count: 97_999))
                others.append(other)
                // Each after the sixth takes the place of another.
                let budget = configuration.budgets.unidentifiedBodies
                try await eventually {
                    budget.used(by: .address(network)) == 98_000 && budget.used == 98_000 * min(number + 1, 6)
                }
            }
            #expect(server.responder.identified == 2)
            #expect(try await others[1].reply().status == 401)
            for other in others[2...3] { #expect(try await other.reply().status == 503) }
            for other in [others[0]] + others[4...] {
                try await other.send([65])
                #expect(try await other.reply().text.hasPrefix("98000"))
            }
            for other in others { other.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `somebody who is known fills a part of the memory and has one large body besides`() async throws {
        var configuration = HTTPServerConfiguration.patient
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 8_000_000, reserve: 7_000_000))
        try await withServer(configuration) { server in
            var clients: [RawConnection] = []
            for _ in 0..<3 {
                let client = try await server.connect()
                try await client.send(Self.head(900_000, memoryOwner: "1"))
                try await client.send([UInt8](repeating: 65, count: 899_999))
                clients.append(client)
                // The first has the room before the others come.
                try await eventually { configuration.budgets.bodies.used(by: .account(0, 1)) >= 900_000 }
            }
            for client in clients.dropFirst() { #expect(try await client.reply().status == 503) }
            #expect(configuration.budgets.bodies.used(by: .account(0, 1)) <= 1_000_000)
            let other = try await server.connect()
            try await other.send(Self.head(900_000, memoryOwner: "2"))
            try await other.send([UInt8](repeating: 65, count: 900_000))
            #expect(try await other.reply().status == 200)
            for client in clients + [other] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }
}
