internal import COpenSSL
internal import Cryptography

extension TLSConnection {
    /// The protocol that ALPN chose; `nil` when the client did not use ALPN.
    public var negotiatedProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        guard let name, length > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
    }

    /// True when the handshake resumed an earlier session.
    public var wasResumed: Bool { SSL_session_reused(ssl) == 1 }

    /// The version in use; `nil` before the handshake is finished.
    public var version: TLSVersion? {
        SSL_is_init_finished(ssl) == 1 ? TLSVersion(number: SSL_version(ssl)) : nil
    }

    /// OpenSSL's name of the cipher suite in use; `nil` before the handshake chose one.
    public var cipherSuite: String? {
        guard let cipher = SSL_get_current_cipher(ssl) else { return nil }
        return String(cString: SSL_CIPHER_get_name(cipher))
    }

    /// The peer's certificate; `nil` on the server's side and before the handshake.
    public var peerCertificate: Certificate? {
        guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
        return Certificate(owner: Certificate.Owner(takingOwnershipOf: certificate))
    }

    /// Names the server that a client expects: in SNI, and to the check of its certificate.
    func expect(_ hostName: String, _ trust: TLSClientContext.Trust) throws(TLSError) {
        let host: Host
        do { host = try Host(hostName) } catch {
            throw .protocolViolation(OpenSSLError(draining: "name the server: \(error)"))
        }
        var isDone = true
        switch host {
        case .name(let name):
            isDone = saltern_SSL_set_host_name(ssl, name) == 1
            if case .systemAuthorities = trust { isDone = isDone && SSL_set1_host(ssl, name) == 1 }
        case .address(let bytes):
            // RFC 6066 section 3: an address is never sent as SNI.
            if case .systemAuthorities = trust {
                isDone = X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), bytes, bytes.count) == 1
            }
        }
        guard isDone else { throw .protocolViolation(OpenSSLError(draining: "name the server")) }
    }
}
