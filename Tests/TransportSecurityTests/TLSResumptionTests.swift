import COpenSSL
import Cryptography
import Testing

@testable import TransportSecurity

struct TLSResumptionTests {
    /// Makes a first connection and returns the session that the server's ticket allows to resume.
    private func session(_ server: TLSServerContext, _ client: TLSClientContext) throws -> Session {
        let pair = try TLSPair(server: server, client: client)
        try pair.handshake()
        // The ticket follows the handshake and is read together with the first bytes.
        try pair.server.send([1])
        #expect(try pair.client.receive().bytes == [1])
        let session = Session(pointer: try #require(SSL_get1_session(pair.client.ssl)))
        // OpenSSL does not resume a session whose connection was freed without a goodbye.
        pair.client.shutdown()
        return session
    }

    private func isResumed(
        _ server: TLSServerContext, _ client: TLSClientContext, with session: Session
    ) throws -> Bool {
        let pair = try TLSPair(server: server, client: client)
        try #require(SSL_set_session(pair.client.ssl, session.pointer) == 1)
        try pair.handshake()
        #expect(pair.server.wasResumed == pair.client.wasResumed)
        try pair.client.send([2])
        #expect(try pair.server.receive().bytes == [2])
        return pair.server.wasResumed
    }

    @Test(arguments: TLSVersion.allCases)
    func `a ticket resumes a session`(_ version: TLSVersion) throws {
        let identity = try TestIdentity()
        let server = try identity.server(version)
        let client = try identity.client(version)
        if version == .version12 {
            try #require(saltern_SSL_CTX_set_max_proto_version(client.context.pointer, TLS1_2_VERSION) == 1)
        }
        let session = try session(server, client)
        #expect(try isResumed(server, client, with: session))
    }

    @Test func `a ticket of an older context leads to a full handshake`() throws {
        let identity = try TestIdentity()
        let client = try identity.client()
        let session = try session(identity.server(), client)
        #expect(try !isResumed(identity.server(), client, with: session))
    }

    @Test func `the server keeps no sessions`() throws {
        let identity = try TestIdentity()
        let server = try identity.server()
        _ = try session(server, identity.client())
        #expect(saltern_SSL_CTX_sess_number(server.context.pointer) == 0)
        #expect(SSL_CTX_get_num_tickets(server.context.pointer) == 1)
    }

    @Test func `a ticket allows no early data`() throws {
        let identity = try TestIdentity()
        let session = try session(identity.server(), identity.client())
        #expect(SSL_SESSION_get_max_early_data(session.pointer) == 0)
    }

    /// Owns an `SSL_SESSION *`.
    private final class Session {
        let pointer: OpaquePointer

        init(pointer: OpaquePointer) {
            self.pointer = pointer
        }

        deinit { SSL_SESSION_free(pointer) }
    }
}
