import COpenSSL
import Cryptography
import Testing

@testable import TransportSecurity

/// A server and a client on one pair of sockets.
struct TLSPair {
    let sockets: SocketPair
    let server: TLSConnection
    let client: TLSConnection

    init(server context: TLSServerContext, client clientContext: TLSClientContext) throws {
        sockets = try SocketPair()
        server = try TLSConnection(context: context, descriptor: sockets.server)
        client = try TLSConnection(context: clientContext, descriptor: sockets.client, hostName: "localhost")
    }

    /// Runs both sides until both are done.
    func handshake() throws {
        var isServerDone = false
        var isClientDone = false
        for _ in 0..<20 where !(isServerDone && isClientDone) {
            if !isClientDone { isClientDone = try client.handshake() == .finished }
            if !isServerDone { isServerDone = try server.handshake() == .finished }
        }
        try #require(isServerDone && isClientDone, "the handshake does not come to an end")
    }

    /// What each side throws when both go on until both have failed or nothing moves.
    func failures() -> (server: TLSError?, client: TLSError?) {
        var failures: (server: TLSError?, client: TLSError?) = (nil, nil)
        for _ in 0..<20 {
            if failures.client == nil {
                do throws(TLSError) { _ = try client.handshake() } catch { failures.client = error }
            }
            if failures.server == nil {
                do throws(TLSError) { _ = try server.handshake() } catch { failures.server = error }
            }
        }
        return failures
    }
}

extension TLSConnection {
    /// Writes everything; fails the test when the socket does not take it at once.
    func send(_ bytes: [UInt8]) throws {
        #expect(try bytes.withUnsafeBytes { try write($0) } == .bytes(bytes.count))
    }

    /// Sends a key update (RFC 8446 section 4.6.3).
    func updateKeys() throws {
        try #require(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
        try #require(SSL_do_handshake(ssl) == 1)
    }

    /// One read of at most `count` bytes.
    func receive(_ count: Int = 16384) throws -> (result: ReadResult, bytes: [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: count)
        let result = try buffer.withUnsafeMutableBytes { try read(into: $0) }
        guard case .bytes(let filled) = result else { return (result, []) }
        return (result, Array(buffer.prefix(filled)))
    }
}

extension TLSError {
    /// True when OpenSSL's stack names `reason`, a number of the SSL library.
    func has(_ reason: Int32) -> Bool {
        guard case .protocolViolation(let error) = self else { return false }
        return error.stack.contains { $0.library == ERR_LIB_SSL && $0.reason == reason }
    }
}

/// Contexts for `localhost`.
struct TestIdentity {
    let key: PrivateKey
    let certificate: Certificate
    let identity: TLSIdentity

    init() throws {
        key = try PrivateKey.generate()
        certificate = try SelfSignedCertificate.make(hosts: [Host("localhost"), Host("127.0.0.1")], key: key)
        identity = try TLSIdentity(chain: [certificate], key: key)
    }

    func server(_ minimumVersion: TLSVersion = .version13) throws -> TLSServerContext {
        try TLSServerContext(identity: identity, minimumVersion: minimumVersion)
    }

    func client(_ minimumVersion: TLSVersion = .version13) throws -> TLSClientContext {
        try TLSClientContext(trust: .pins([certificate.pin]), minimumVersion: minimumVersion)
    }
}

extension TLSConnection {
    /// The number of certificates that the server sent to this client.
    var peerChainCount: Int32 {
        SSL_get_peer_cert_chain(ssl).map { saltern_X509_stack_count($0) } ?? 0
    }
}
