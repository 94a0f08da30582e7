import COpenSSL
import Cryptography
import Foundation
import Testing

@testable import TransportSecurity

struct TLSHandshakeTests {
    private let identity = try? TestIdentity()

    private func contexts(_ version: TLSVersion = .version13) throws -> (TLSServerContext, TLSClientContext) {
        let identity = try #require(identity)
        return (try identity.server(version), try identity.client(version))
    }

    @Test func `a handshake ends in TLS 1.3 and HTTP 1.1`() throws {
        let (server, client) = try contexts()
        let pair = try TLSPair(server: server, client: client)
        #expect(pair.server.version == nil)
        try pair.handshake()
        for side in [pair.server, pair.client] {
            #expect(side.version == .version13)
            #expect(side.negotiatedProtocol == "http/1.1")
            #expect(side.cipherSuite == "TLS_AES_128_GCM_SHA256")
            #expect(!side.wasResumed)
        }
        #expect(pair.client.peerCertificate == identity?.certificate)
        #expect(pair.server.peerCertificate == nil)
    }

    @Test func `a client that asks for ChaCha20 first gets it`() throws {
        let (server, client) = try contexts()
        try #require(
            SSL_CTX_set_ciphersuites(
                client.context.pointer, "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256") == 1)
        let pair = try TLSPair(server: server, client: client)
        try pair.handshake()
        #expect(pair.server.cipherSuite == "TLS_CHACHA20_POLY1305_SHA256")
    }

    @Test func `a client without ALPN is served`() throws {
        let (server, client) = try contexts()
        try #require(SSL_CTX_set_alpn_protos(client.context.pointer, nil, 0) == 0)
        let pair = try TLSPair(server: server, client: client)
        try pair.handshake()
        #expect(pair.server.negotiatedProtocol == nil)
    }

    @Test func `a client without SNI is served`() throws {
        let (server, client) = try contexts()
        let sockets = try SocketPair()
        let pair = try (
            server: TLSConnection(context: server, descriptor: sockets.server),
            client: TLSConnection(context: client, descriptor: sockets.client, hostName: nil)
        )
        #expect(try pair.client.handshake() == .wantsRead)
        #expect(try pair.server.handshake() == .wantsRead)
        #expect(try pair.client.handshake() == .finished)
        #expect(try pair.server.handshake() == .finished)
    }

    @Test func `HTTP 1.1 is chosen from a longer list`() throws {
        let (server, client) = try contexts()
        try offer(["h2", "spdy/3", "http/1.1"], client)
        let pair = try TLSPair(server: server, client: client)
        try pair.handshake()
        #expect(pair.server.negotiatedProtocol == "http/1.1")
    }

    @Test(arguments: [["h2"], ["http/1.0", "http/1"], ["http/1.1x"], ["xhttp/1.1"]])
    func `a client with other protocols only gets the alert for it`(_ protocols: [String]) throws {
        let (server, client) = try contexts()
        try offer(protocols, client)
        let failures = try TLSPair(server: server, client: client).failures()
        #expect(failures.server?.has(SSL_R_NO_APPLICATION_PROTOCOL) == true)
        // RFC 7301 section 3.2: alert 120; OpenSSL numbers the alerts of the peer from 1000.
        #expect(failures.client?.has(1000 + 120) == true)
    }

    @Test func `a TLS 1.2 client is refused by default`() throws {
        let (server, client) = try (contexts().0, contexts(.version12).1)
        try limit(client, to: TLS1_2_VERSION)
        let failures = try TLSPair(server: server, client: client).failures()
        #expect(failures.server?.has(SSL_R_UNSUPPORTED_PROTOCOL) == true)
        #expect(failures.client?.has(SSL_R_TLSV1_ALERT_PROTOCOL_VERSION) == true)
    }

    @Test func `a TLS 1.2 client is served with an AEAD suite where that is allowed`() throws {
        let (server, client) = try contexts(.version12)
        try limit(client, to: TLS1_2_VERSION)
        let pair = try TLSPair(server: server, client: client)
        try pair.handshake()
        #expect(pair.server.version == .version12)
        #expect(pair.server.cipherSuite == "ECDHE-ECDSA-AES128-GCM-SHA256")
    }

    @Test func `a TLS 1.2 client without an AEAD suite is refused`() throws {
        let (server, client) = try contexts(.version12)
        try limit(client, to: TLS1_2_VERSION)
        try #require(SSL_CTX_set_cipher_list(client.context.pointer, "ECDHE-ECDSA-AES128-SHA256") == 1)
        let failures = try TLSPair(server: server, client: client).failures()
        #expect(failures.server?.has(SSL_R_NO_SHARED_CIPHER) == true)
    }

    @Test func `a TLS 1.1 client is refused even where 1.2 is allowed`() throws {
        let (server, client) = try contexts(.version12)
        try #require(saltern_SSL_CTX_set_min_proto_version(client.context.pointer, TLS1_1_VERSION) == 1)
        try limit(client, to: TLS1_1_VERSION)
        SSL_CTX_set_security_level(client.context.pointer, 0)
        let failures = try TLSPair(server: server, client: client).failures()
        #expect(failures.server != nil)
        #expect(failures.client != nil)
    }

    @Test func `a client that does not know the key refuses it`() throws {
        let (server, _) = try contexts()
        let stranger = try PrivateKey.generate().pin()
        let pair = try TLSPair(server: server, client: TLSClientContext(trust: .pins([stranger])))
        #expect(throws: TLSError.pinMismatch) { try pair.handshake() }
        #expect(throws: TLSError.failedBefore) { try pair.client.send([1]) }
    }

    @Test func `a client without any pin trusts nobody`() throws {
        let (server, _) = try contexts()
        let pair = try TLSPair(server: server, client: TLSClientContext(trust: .pins([])))
        #expect(throws: TLSError.pinMismatch) { try pair.handshake() }
    }

    @Test func `sending before the pins are compared stops the process`() async {
        await #expect(processExitsWith: .failure) {
            do {
                let identity = try TestIdentity()
                let pair = try TLSPair(server: identity.server(), client: identity.client())
                _ = try pair.client.handshake()
                _ = try pair.server.handshake()
                try pair.client.send(Array("secret".utf8))
            } catch {
                // Any other error is not what is expected here.
                exit(EXIT_SUCCESS)
            }
        }
    }

    @Test func `a client that trusts authorities refuses a self-signed certificate`() throws {
        let (server, _) = try contexts()
        let failures = try TLSPair(server: server, client: TLSClientContext(trust: .systemAuthorities)).failures()
        #expect(failures.client?.has(SSL_R_CERTIFICATE_VERIFY_FAILED) == true)
    }

    private func offer(_ protocols: [String], _ client: TLSClientContext) throws {
        let list = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        try #require(SSL_CTX_set_alpn_protos(client.context.pointer, list, UInt32(list.count)) == 0)
    }

    private func limit(_ client: TLSClientContext, to version: Int32) throws {
        try #require(saltern_SSL_CTX_set_max_proto_version(client.context.pointer, version) == 1)
    }
}
