import COpenSSL
import Cryptography
import Testing

@testable import TransportSecurity

struct TLSHostilePeerTests {
    private func connection() throws -> (connection: TLSConnection, sockets: SocketPair) {
        let sockets = try SocketPair()
        let context = try TestIdentity().server()
        return (try TLSConnection(context: context, descriptor: sockets.server), sockets)
    }

    private func failure(_ connection: TLSConnection) -> TLSError? {
        do throws(TLSError) {
            _ = try connection.handshake()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        [UInt8](repeating: 0xA5, count: 100), [UInt8](repeating: 0, count: 100),
        // A record header with a length beyond what TLS allows.
        [22, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 100),
        // A ClientHello of type 1 whose body is nonsense.
        [22, 3, 1, 0, 8, 1, 0, 0, 4, 1, 2, 3, 4],
    ])
    func `garbage instead of a ClientHello is refused with OpenSSL's reasons`(_ garbage: [UInt8]) throws {
        let (connection, sockets) = try connection()
        try sockets.send(garbage, from: sockets.client)
        guard case .protocolViolation(let error) = failure(connection) else {
            Issue.record("the garbage was not refused")
            return
        }
        #expect(!error.stack.isEmpty)
        #expect(ERR_peek_error() == 0)
    }

    @Test func `plain HTTP is refused`() throws {
        let (connection, sockets) = try connection()
        try sockets.send(Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8), from: sockets.client)
        #expect(failure(connection)?.has(SSL_R_HTTP_REQUEST) == true)
    }

    @Test func `a connection that failed cannot be used again`() throws {
        let (connection, sockets) = try connection()
        try sockets.send([UInt8](repeating: 0xA5, count: 100), from: sockets.client)
        #expect(failure(connection) != nil)
        #expect(throws: TLSError.failedBefore) { try connection.handshake() }
        #expect(throws: TLSError.failedBefore) { try connection.receive() }
        connection.shutdown()
        #expect(ERR_peek_error() == 0)
    }

    @Test func `a peer that says nothing is waited for`() throws {
        let (connection, sockets) = try connection()
        #expect(try connection.handshake() == .wantsRead)
        #expect(try connection.handshake() == .wantsRead)
        withExtendedLifetime(sockets) {}
    }

    @Test func `a peer that goes away during the handshake is noticed`() throws {
        let (connection, sockets) = try connection()
        #expect(try connection.handshake() == .wantsRead)
        sockets.cut(sockets.client)
        #expect(failure(connection) == .closedWithoutNotification)
    }

    @Test func `an error that somebody else left in the queue does no harm`() throws {
        let identity = try TestIdentity()
        let pair = try TLSPair(server: identity.server(), client: identity.client())
        leaveAnError()
        try pair.handshake()
        leaveAnError()
        #expect(try pair.server.receive().result == .wantsRead)
        leaveAnError()
        try pair.server.send([1, 2, 3])
        leaveAnError()
        #expect(try pair.client.receive().bytes == [1, 2, 3])
        ERR_clear_error()
    }

    @Test func `renegotiation is refused and the connection goes on`() throws {
        let identity = try TestIdentity()
        let client = try identity.client(.version12)
        try #require(saltern_SSL_CTX_set_max_proto_version(client.context.pointer, TLS1_2_VERSION) == 1)
        let pair = try TLSPair(server: identity.server(.version12), client: client)
        try pair.handshake()
        // The client's own setting forbids it too; a hostile one would not have it.
        SSL_clear_options(pair.client.ssl, saltern_SSL_OP_NO_RENEGOTIATION())
        try #require(SSL_renegotiate(pair.client.ssl) == 1)
        _ = SSL_do_handshake(pair.client.ssl)
        #expect(try pair.server.receive().result == .wantsRead)
        var failure: TLSError?
        do throws(TLSError) { _ = try pair.client.handshake() } catch { failure = error }
        #expect(failure?.has(SSL_R_NO_RENEGOTIATION) == true)
        try pair.server.send([1])
    }

    @Test func `data that was read ahead together with key updates is returned`() throws {
        let identity = try TestIdentity()
        let pair = try TLSPair(server: identity.server(), client: identity.client())
        try pair.handshake()
        for _ in 0..<3 { try pair.client.updateKeys() }
        try pair.client.send([1, 2, 3])
        #expect(try pair.server.receive().bytes == [1, 2, 3])
        #expect(try pair.server.receive().result == .wantsRead)
    }

    private func leaveAnError() {
        #expect(EVP_MD_fetch(nil, "NO-SUCH-DIGEST", nil) == nil)
        #expect(ERR_peek_error() != 0)
    }
}
