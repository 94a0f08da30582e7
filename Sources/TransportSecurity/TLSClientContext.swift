internal import COpenSSL
internal import Cryptography

/// The settings that all connections of a client share: trust, versions, suites.
public final class TLSClientContext: Sendable {
    /// The servers that a client trusts.
    public enum Trust: Sendable {
        /// Servers whose key has one of these pins, with a certificate of any issuer.
        case pins(Set<SPKIPin>)
        /// Servers with a certificate for their host name from one of the system's authorities.
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
            // The pin is compared at the end of the handshake, before this side sends data.
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_NONE, nil)
        case .systemAuthorities:
            try context.require(SSL_CTX_set_default_verify_paths(context.pointer) == 1, "find the system's authorities")
            SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
        }
    }
}
