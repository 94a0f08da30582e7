import Foundation
import Testing

@testable import TransportSecurity

/// Bytes that arrive one at a time, as a slow or a hostile client sends them.
struct TLSTrickleTests {
    private let clientSide: SocketPair
    private let serverSide: SocketPair
    private let server: TLSConnection
    private let client: TLSConnection

    init() throws {
        clientSide = try SocketPair()
        serverSide = try SocketPair()
        let identity = try TestIdentity()
        // Between `clientSide.server` and `serverSide.client` the test carries the bytes itself.
        server = try TLSConnection(context: identity.server(), descriptor: serverSide.server)
        client = try TLSConnection(context: identity.client(), descriptor: clientSide.client, hostName: "localhost")
    }

    private func take(from descriptor: Int32) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let count = Foundation.read(descriptor, &buffer, buffer.count)
        return Array(buffer.prefix(max(count, 0)))
    }

    private func handshake() throws {
        #expect(try client.handshake() == .wantsRead)
        for byte in take(from: clientSide.server) {
            try serverSide.send([byte], from: serverSide.client)
            #expect(try server.handshake() == .wantsRead)
        }
        for byte in take(from: serverSide.client) {
            try clientSide.send([byte], from: clientSide.server)
            _ = try client.handshake()
        }
        var isFinished = false
        for byte in take(from: clientSide.server) {
            #expect(!isFinished)
            try serverSide.send([byte], from: serverSide.client)
            isFinished = try server.handshake() == .finished
        }
        #expect(isFinished)
    }

    @Test func `a handshake in single bytes succeeds`() throws {
        try handshake()
        #expect(server.version == .version13)
    }

    @Test func `half a record is not read`() throws {
        try handshake()
        try client.send([UInt8](repeating: 7, count: 1000))
        let record = take(from: clientSide.server)
        for byte in record.dropLast() {
            try serverSide.send([byte], from: serverSide.client)
            #expect(try server.receive().result == .wantsRead)
        }
        try serverSide.send([try #require(record.last)], from: serverSide.client)
        #expect(try server.receive(1).result == .bytes(1))
        #expect(server.hasPendingBytes)
        #expect(try server.receive().result == .bytes(999))
    }

    @Test func `a flood of key updates does not hold up the loop, one read takes what was read ahead`() throws {
        try handshake()
        var flood: [UInt8] = []
        for _ in 0..<2_000 {
            try client.updateKeys()
            flood += take(from: clientSide.server)
        }
        try client.send([1, 2, 3])
        flood += take(from: clientSide.server)
        try serverSide.send(flood, from: serverSide.client)

        var reads = 0
        var received: [UInt8] = []
        while received.isEmpty {
            let before = serverSide.waitingBytes(at: serverSide.server)
            received = try server.receive().bytes
            let taken = before - serverSide.waitingBytes(at: serverSide.server)
            #expect(taken > 0)
            // OpenSSL's buffer holds one record of the greatest length.
            #expect(taken < 20_000)
            reads += 1
        }
        #expect(received == [1, 2, 3])
        #expect(reads > 2)
    }
}
