import HTTPCore
import HTTPServer
import SalternTesting
import Testing

/// Bodies beyond their senders' parts of the memory, of which there is enough for one at a time here.
@Suite struct LargeBodyMemoryTests {
    private static let body = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }
    private static let answer = "1000000 \(TestResponder.checksum(of: body))"

    private static func configuration(loanTime: Duration = .seconds(300)) -> HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration.patient
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 1_600_000, reserve: 1_400_000))
        configuration.loanTime = loanTime
        configuration.loanWaitLimit = .seconds(300)
        return configuration
    }

    /// Sends all of a body but the last byte.
    private static func begin(
        _ server: TestServer, memoryOwner: Int, from source: String, tls: TestIdentity? = nil
    ) async throws -> RawConnection {
        let client = try await server.connect(tls?.clientContext(), from: source)
        try await client.send(
            "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: \(memoryOwner)\r\nContent-Length: \(body.count)\r\n\r\n"
        )
        try await client.send(Array(body[..<999_999]))
        return client
    }

    private static func expectServed(_ client: RawConnection) async throws {
        try await client.send([body[999_999]])
        #expect(try await client.reply().text == answer)
    }

    private static func expectRefused(_ client: RawConnection) async throws {
        let reply = try await client.reply()
        #expect(reply.status == 503)
        #expect(reply.text.contains(#""code":"overloaded""#))
        #expect(reply.field("Retry-After") == "1")
        #expect(reply.field("Connection") == "close")
    }

    private static func holds(_ server: TestServer, _ memoryOwner: UInt64) -> Bool {
        server.bodies.used(by: .account(0, memoryOwner)) == 1_000_000
    }

    @Test(arguments: [false, true])
    func `a body waits for another one, in order, and small ones for nobody`(usesTLS: Bool) async throws {
        let configuration = Self.configuration()
        let identity = usesTLS ? try TestIdentity() : nil
        try await withServer(configuration, context: identity?.serverContext, loops: 2) { server in
            let first = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1", tls: identity)
            try await eventually { Self.holds(server, 1) }
            let second = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2", tls: identity)
            try await eventually { server.bodies.isReserveWanted }
            let third = try await Self.begin(server, memoryOwner: 3, from: "127.0.0.3", tls: identity)

            let small = try await server.connect(identity?.clientContext(), from: "127.0.0.4")
            try await small.send(
                "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: 4\r\nContent-Length: 190000\r\n\r\n")
            try await small.send(Array(Self.body[..<190_000]))
            #expect(try await small.reply().text.hasPrefix("190000 "))

            #expect(!Self.holds(server, 2))
            try await Self.expectServed(first)
            try await eventually { Self.holds(server, 2) }
            #expect(!Self.holds(server, 3))
            try await Self.expectServed(second)
            try await Self.expectServed(third)
            for client in [first, second, third, small] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `a slow body gives back what others wait for, and not before somebody waits`() async throws {
        let configuration = Self.configuration(loanTime: .milliseconds(200))
        try await withServer(configuration) { server in
            let slow = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            try await Task.sleep(for: .seconds(1))
            #expect(Self.holds(server, 1))

            let other = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2")
            try await Self.expectRefused(slow)
            try await eventually { Self.holds(server, 2) }
            try await Self.expectServed(other)

            // With nobody else there it has all the time it needs.
            let again = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            try await Task.sleep(for: .seconds(1))
            try await Self.expectServed(again)
            for client in [slow, other, again] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `two slow senders do not take it from each other for ever`() async throws {
        let configuration = Self.configuration(loanTime: .milliseconds(200))
        try await withServer(configuration) { server in
            let one = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            let two = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2")
            try await Self.expectRefused(one)
            try await eventually { Self.holds(server, 2) }
            // The one that gave back waits until the other is done, however slow that is.
            let again = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await Task.sleep(for: .seconds(1))
            #expect(Self.holds(server, 2))
            // Who was not slow comes before it.
            let third = try await Self.begin(server, memoryOwner: 3, from: "127.0.0.3")
            try await Self.expectRefused(two)
            try await eventually { Self.holds(server, 3) }
            try await Self.expectServed(third)
            try await eventually { Self.holds(server, 1) }
            try await Self.expectServed(again)
            for client in [one, two, again, third] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `who had to give back gives way at once from then on`() async throws {
        let configuration = Self.configuration(loanTime: .milliseconds(200))
        try await withServer(configuration) { server in
            let slow = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            let other = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2")
            try await Self.expectRefused(slow)
            try await Self.expectServed(other)
            for client in [slow, other] { client.close() }
        }
        // The same budget behind a server that calls nothing back in time.
        var patient = configuration
        patient.loanTime = .seconds(300)
        try await withServer(patient) { server in
            let slow = try await Self.begin(server, memoryOwner: 3, from: "127.0.0.1")
            try await eventually { Self.holds(server, 3) }
            let other = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2")
            try await Self.expectRefused(slow)
            try await Self.expectServed(other)
            for client in [slow, other] { client.close() }
            try await server.expectNothingHeld(patient)
        }
    }

    @Test func `who waits in vain is told so, and who goes waits no more`() async throws {
        var configuration = Self.configuration()
        configuration.loanWaitLimit = .milliseconds(300)
        try await withServer(configuration) { server in
            let first = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            let second = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2")
            try await Self.expectRefused(second)
            try await eventually { !server.bodies.isReserveWanted }
            try await Self.expectServed(first)

            let gone = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            gone.close()
            // Before that, the next one could wait in vain.
            try await eventually { server.bodies.used(by: .account(0, 1)) == 0 }
            let next = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2")
            try await Self.expectServed(next)
            for client in [first, second, next] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `of one network one body waits`() async throws {
        let configuration = Self.configuration()
        try await withServer(configuration) { server in
            let first = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            let second = try await Self.begin(server, memoryOwner: 2, from: "127.0.0.2")
            try await eventually { server.bodies.isReserveWanted }
            let third = try await Self.begin(server, memoryOwner: 3, from: "127.0.0.2")
            try await Self.expectRefused(third)
            try await Self.expectServed(first)
            try await Self.expectServed(second)
            for client in [first, second, third] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `the end of a waiting body and the next request may have come with it`() async throws {
        var configuration = Self.configuration()
        // Parts of 100,000 bytes, and no room for the second body beside the first one.
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 800_000, reserve: 1_050_000))
        try await withServer(configuration) { server in
            let first = try await Self.begin(server, memoryOwner: 1, from: "127.0.0.1")
            try await eventually { Self.holds(server, 1) }
            // 65,536 bytes are within the part. More of them are charged as the whole body, which has to wait.
            let second = try await server.connect(from: "127.0.0.2")
            try await second.send(
                "POST /upload HTTP/1.1\r\nHost: localhost\r\nX-Party: 2\r\nContent-Length: 110000\r\n\r\n")
            try await second.send(Array(Self.body[..<65_000]))
            try await eventually { server.bodies.used(by: .account(0, 2)) == 65_536 }
            // All the rest in one piece that is smaller than what is read at once.
            try await second.send(
                Array(Self.body[65_000..<110_000]) + Array("GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            try await eventually { server.bodies.isReserveWanted }
            try await Self.expectServed(first)
            let checksum = TestResponder.checksum(of: Array(Self.body[..<110_000]))
            #expect(try await second.reply().text == "110000 \(checksum)")
            #expect(try await second.reply().text == "/next")
            for client in [first, second] { client.close() }
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `a body in chunks has memory for all that it may become`() async throws {
        var configuration = Self.configuration()
        configuration.budgets = ServerBudgets(bodies: MemoryBudget(total: 1_600_000, reserve: 8_388_608))
        try await withServer(configuration) { server in
            let client = try await server.connect()
            try await client.send("POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<8 {
                try await client.send("f4240\r\n")
                try await client.send(Self.body + [13, 10])
            }
            try await eventually { server.bodies.used == 8_388_608 }
            try await client.send("0\r\n\r\n")
            #expect(try await client.reply().text.hasPrefix("8000000 "))
            client.close()
            try await server.expectNothingHeld(configuration)
        }
    }
}
