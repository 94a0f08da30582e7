import COpenSSL
import Cryptography
import Foundation
import Testing

@testable import TransportSecurity

struct TLSTransferTests {
    private func pair() throws -> TLSPair {
        let identity = try TestIdentity()
        let pair = try TLSPair(server: identity.server(), client: identity.client())
        try pair.handshake()
        return pair
    }

    @Test func `bytes arrive in both directions`() throws {
        let pair = try pair()
        try pair.client.send(Array("request".utf8))
        #expect(try pair.server.receive().bytes == Array("request".utf8))
        try pair.server.send(Array("reply".utf8))
        #expect(try pair.client.receive().bytes == Array("reply".utf8))
        #expect(try pair.server.receive().result == .wantsRead)
    }

    @Test func `a socket that is full takes a part, and the rest from elsewhere in memory`() throws {
        let pair = try pair()
        let message = SecureRandom.bytes(3_000_000)
        var sent = 0
        var received: [UInt8] = []
        var wasFull = false
        while received.count < message.count {
            while sent < message.count {
                // A copy each time: the buffer moves, as it does in a server.
                let rest = Array(message[sent...])
                let result = try rest.withUnsafeBytes { try pair.server.write($0) }
                guard case .bytes(let count) = result else {
                    #expect(result == .wantsWrite)
                    wasFull = true
                    break
                }
                #expect(count > 0)
                sent += count
            }
            while case (.bytes, let bytes) = try pair.client.receive() { received += bytes }
        }
        #expect(wasFull)
        #expect(received == message)
    }

    @Test func `bytes that wait inside OpenSSL are announced`() throws {
        let pair = try pair()
        #expect(!pair.server.hasPendingBytes)
        try pair.client.send([UInt8](repeating: 7, count: 5000))
        #expect(try pair.server.receive(10).result == .bytes(10))
        #expect(pair.server.hasPendingBytes)
        #expect(try pair.server.receive().result == .bytes(4990))
        #expect(!pair.server.hasPendingBytes)
    }

    @Test func `a peer that says goodbye has closed`() throws {
        let pair = try pair()
        try pair.client.send([1])
        pair.client.shutdown()
        #expect(try pair.server.receive().bytes == [1])
        #expect(try pair.server.receive().result == .closed)
        #expect(try pair.server.receive().result == .closed)
        // The other direction is still open.
        try pair.server.send([2])
        #expect(try pair.client.receive().bytes == [2])
    }

    @Test func `a peer that goes without goodbye has not closed`() throws {
        let pair = try pair()
        #expect(try pair.client.receive().result == .wantsRead)
        pair.sockets.cut(pair.sockets.client)
        #expect(throws: TLSError.closedWithoutNotification) { try pair.server.receive() }
        #expect(ERR_peek_error() == 0)
    }

    @Test func `writing to a peer that has gone is an error and not a signal`() throws {
        let pair = try pair()
        #expect(try pair.client.receive().result == .wantsRead)
        pair.sockets.cut(pair.sockets.client)
        #expect(throws: TLSError.socket(errno: EPIPE)) { try pair.server.send([1]) }
        pair.server.shutdown()
    }

    @Test func `a reset is reported as such`() throws {
        let pair = try pair()
        try pair.server.send([UInt8](repeating: 1, count: 100))
        // Closing with bytes unread resets the connection.
        pair.sockets.cut(pair.sockets.client)
        #expect(throws: TLSError.socket(errno: ECONNRESET)) { try pair.server.receive() }
    }

    @Test func `a record that was changed on its way ends the connection`() throws {
        let pair = try pair()
        try pair.sockets.send([23, 3, 3, 0, 40] + [UInt8](repeating: 9, count: 40), from: pair.sockets.client)
        var failure: TLSError?
        do throws(TLSError) {
            var byte: UInt8 = 0
            _ = try readByte(&byte, pair.server)
        } catch {
            failure = error
        }
        #expect(failure?.has(SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC) == true)
    }

    private func readByte(_ byte: inout UInt8, _ connection: TLSConnection) throws(TLSError) -> TLSConnection.ReadResult
    {
        try withUnsafeMutableBytes(of: &byte) { buffer throws(TLSError) in try connection.read(into: buffer) }
    }
}
