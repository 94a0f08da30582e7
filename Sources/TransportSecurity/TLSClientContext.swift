internal import COpenSSL
internal import Cryptography

/// What all connections of a client share: whom to trust, versions, suites.
public final class TLSClientContext: Sendable {
    /// Whom a client trusts.
    public enum Trust: Sendable {
        /// A server whose key has one of these pins, whoever issued its certificate.
        case pins(Set<SPKIPin>)
        /// A server with a certificate for its host name from one of the system's authorities.
        case systemAuthorities
    }

    let trust: Trust
    let context: TLSContext

    public init(trust: Trust, minimumVersion: TLSVersion = .version13) throws(CertificateError) {
        self.trust = trust
        context = try TLSContext(method: TLS_client_method())
        try context.limit(to: minimumVersion)
        context.reduceMemory()
        var protocols = [UInt8(ApplicationProtocol.http1.utf8CodeUnitCount)]
        ApplicationProtocol.http1.withUTF8Buffer { protocols.append(contentsOf: $0) }
        try context.require(
            SSL_CTX_set_alpn_protos(context.pointer, protocols, UInt32(protocols.count)) == 0, "set ALPN")
        switch trust {
        case .pins:
            // The pin is compared when the handshake is over, before a byte of ours is sent.
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_NONE, nil)
        case .systemAuthorities:
            try context.require(SSL_CTX_set_default_verify_paths(context.pointer) == 1, "find the system's authorities")
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
        }
    }
}
