import HTTPCore
import SalternTesting
import Synchronization
import Testing

@testable import HTTPServer

/// Connections of a proxy that names its clients by the PROXY protocol.
@Suite struct ProxyProtocolTests {
    private static let request = Array("GET /client HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
    private static let prefix: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]

    private static func header(_ client: [UInt8], more: [UInt8] = []) -> [UInt8] {
        let rest = client + [127, 0, 0, 1, 0xC3, 0x50, 1, 0xBB] + more
        return prefix + [0x21, 0x11, 0, UInt8(rest.count)] + rest
    }

    private static func configuration(_ senders: String = "127.0.0.1") throws -> HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration.patient
        configuration.proxyProtocolSenders = TrustedProxies([try #require(AddressBlock(senders))])
        configuration.proxyHeaderDeadline = .seconds(300)
        return configuration
    }

    @Test func `the client is the one that the proxy names`() async throws {
        try await withServer(try Self.configuration()) { server in
            let client = try await server.connect()
            try await client.send(Self.header([192, 0, 2, 7], more: [4, 0, 1, 9]) + Self.request)
            #expect(try await client.reply().text == "192.0.2.7:50000")
        }
    }

    @Test func `a header may come byte by byte`() async throws {
        try await withServer(try Self.configuration()) { server in
            let client = try await server.connect()
            for byte in Self.header([192, 0, 2, 7]) { try await client.send([byte]) }
            try await client.send(Self.request)
            #expect(try await client.reply().text == "192.0.2.7:50000")
        }
    }

    @Test func `a proxy that speaks for itself is the client`() async throws {
        try await withServer(try Self.configuration()) { server in
            let client = try await server.connect()
            try await client.send(Self.prefix + [0x20, 0, 0, 0] + Self.request)
            #expect(try await client.reply().text.hasPrefix("127.0.0.1:"))
        }
    }

    @Test func `TLS begins behind the header`() async throws {
        try await withServer(try Self.configuration(), context: try TestIdentity().serverContext) { server in
            let client = try await server.connect()
            // What is no TLS ends the connection as it does without a header.
            try await client.send(Self.header([192, 0, 2, 7]) + Self.request)
            _ = try? await client.readUntilClosed()
            #expect(server.server.statistics.failedHandshakes.load(ordering: .relaxed) == 1)
            #expect(server.server.statistics.refusedProxyHeaders.load(ordering: .relaxed) == 0)
        }
    }

    @Test func `connections count for the address that is named`() async throws {
        var configuration = try Self.configuration()
        configuration.maximumConnectionsPerAddress = 1
        try await withServer(configuration) { server in
            var clients: [RawConnection] = []
            for last in [7, 8, 9] as [UInt8] {
                let client = try await server.connect()
                try await client.send(Self.header([192, 0, 2, last]) + Self.request)
                #expect(try await client.reply().text == "192.0.2.\(last):50000")
                clients.append(client)
            }
            let second = try await server.connect()
            try await second.send(Self.header([192, 0, 2, 7]) + Self.request)
            #expect((try? await second.readUntilClosed()) ?? [] == [])
            #expect(server.server.statistics.droppedOfAddress.load(ordering: .relaxed) == 1)
            clients.removeFirst().close()
            try await eventually { server.server.connectionCount == 2 }
            let third = try await server.connect()
            try await third.send(Self.header([192, 0, 2, 7]) + Self.request)
            #expect(try await third.reply().status == 200)
        }
    }

    @Test(arguments: [
        request, Array("PROXY TCP4 192.0.2.7 127.0.0.1 50000 443\r\n".utf8), prefix + [0x21, 0x12, 0, 12],
        prefix + [0x21, 0x11, 0, 11],
        prefix + [0x21, 0x11, 0xFF, 0xFF], [13, 10, 13, 11],
    ])
    func `a connection of the proxy without a valid header is closed`(bytes: [UInt8]) async throws {
        let configuration = try Self.configuration()
        try await withServer(configuration) { server in
            let client = try await server.connect()
            try await client.send(bytes)
            #expect((try? await client.readUntilClosed()) ?? [] == [])
            #expect(server.server.statistics.refusedProxyHeaders.load(ordering: .relaxed) == 1)
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `a header that does not come in time, or is cut off, ends the connection`() async throws {
        var configuration = try Self.configuration()
        configuration.proxyHeaderDeadline = .milliseconds(50)
        try await withServer(configuration) { server in
            let silent = try await server.connect()
            let slow = try await server.connect()
            try await slow.send(Array(Self.header([192, 0, 2, 7]).dropLast()))
            #expect((try? await silent.readUntilClosed()) ?? [] == [])
            #expect((try? await slow.readUntilClosed()) ?? [] == [])
            try await server.expectNothingHeld(configuration)
        }
    }

    @Test func `others cannot pretend, and need no header`() async throws {
        try await withServer(try Self.configuration("127.0.0.2")) { server in
            let liar = try await server.connect()
            try await liar.send(Self.header([192, 0, 2, 7]) + Self.request)
            #expect(try await liar.reply().status == 400)
            let honest = try await server.connect()
            try await honest.send(Self.request)
            #expect(try await honest.reply().text.hasPrefix("127.0.0.1:"))
        }
    }

    @Test func `a server that stops waits for headers that are on their way`() async throws {
        try await withServer(try Self.configuration()) { server in
            let client = try await server.connect()
            try await client.send(Array(Self.prefix))
            try await eventually { server.server.connectionCount == 1 }
            async let end: Void = server.server.drain(deadline: .seconds(60))
            try await client.send(Array(Self.header([192, 0, 2, 7]).dropFirst(12)) + Self.request)
            #expect(try await client.reply().text == "192.0.2.7:50000")
            client.close()
            await end
        }
    }
}
