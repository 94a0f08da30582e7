internal import COpenSSL
internal import Cryptography

/// Owns an `SSL_CTX *`.
///
/// `@unchecked Sendable` is safe: the context is configured before it is shared, and never changes afterwards. OpenSSL
/// locks the data that connections share through it (reference counts, ticket keys).
final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer

    init(method: OpaquePointer?) throws(CertificateError) {
        OpenSSLError.clearQueue()
        guard let pointer = SSL_CTX_new(method) else {
            throw .openSSL(OpenSSLError(draining: "make a TLS context"))
        }
        self.pointer = pointer
    }

    deinit { SSL_CTX_free(pointer) }
}

extension TLSContext {
    /// Installs chain and key.
    func serve(_ identity: TLSIdentity) throws(CertificateError) {
        try require(
            SSL_CTX_use_certificate(pointer, identity.certificate.owner.pointer) == 1, "install the certificate")
        // The context retains each object that it receives here.
        guard let rest = saltern_X509_stack_new() else { throw .openSSL(OpenSSLError(draining: "allocate a chain")) }
        defer { saltern_X509_stack_free(rest) }
        for certificate in identity.chain.dropFirst() {
            try require(saltern_X509_stack_push(rest, certificate.owner.pointer) > 0, "install the chain")
        }
        try require(saltern_SSL_CTX_set_chain(pointer, rest) == 1, "install the chain")
        // Otherwise OpenSSL searches missing certificates and verifies signatures in every handshake.
        _ = saltern_SSL_CTX_set_mode(pointer, Int(SSL_MODE_NO_AUTO_CHAIN))
        try require(SSL_CTX_use_PrivateKey(pointer, identity.key.owner.pointer) == 1, "install the key")
        try require(SSL_CTX_check_private_key(pointer) == 1, "compare key and certificate")
        // The server's order prefers the suite with the lowest cost on both sides. A client that prefers ChaCha20 (a
        // phone without AES instructions) gets it.
        saltern_SSL_CTX_prefer_server_ciphers(pointer)
        SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
        // With automatic retries, a client that sends only key updates could block one read, and the loop, permanently.
        // Now a read takes the bytes read ahead, and the loop continues.
        _ = saltern_SSL_CTX_clear_mode(pointer, Int(SSL_MODE_AUTO_RETRY))
    }

    /// Resumes sessions by tickets that clients keep. They need no memory here, and are valid on all loops.
    ///
    /// OpenSSL creates the key of the tickets with the context and accepts them for two hours. A resumption in TLS 1.3
    /// still agrees on a fresh key (RFC 8446 section 2.2), so a stolen ticket key decrypts no recorded traffic.
    func resumeWithTickets() throws(CertificateError) {
        _ = saltern_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        let name = Array("saltern".utf8)
        try require(SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count)) == 1, "name the sessions")
        // OpenSSL's default is two. A second ticket costs its encryption and 256 bytes in every handshake. Only a
        // client that opens several connections at once could use it.
        try require(SSL_CTX_set_num_tickets(pointer, 1) == 1, "limit the tickets")
        // Early data can be replayed, so it is disabled.
        try require(SSL_CTX_set_max_early_data(pointer, 0) == 1, "refuse early data")
        try require(SSL_CTX_set_recv_max_early_data(pointer, 0) == 1, "refuse early data")
    }

    /// Selects `http/1.1` by ALPN (RFC 7301), and sends an alert to a client that offers only other protocols. Clients
    /// without ALPN are served.
    func selectApplicationProtocol() {
        SSL_CTX_set_alpn_select_cb(
            pointer,
            { _, selected, selectedLength, offered, offeredLength, _ in
                let list = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
                guard let offset = ApplicationProtocol.offset(ofHTTP1In: list) else {
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                // The result may point into the client's list, which outlives the callback.
                selected?.pointee = offered.map { $0 + offset }
                selectedLength?.pointee = UInt8(ApplicationProtocol.http1.utf8CodeUnitCount)
                return SSL_TLSEXT_ERR_OK
            }, nil)
    }
}

extension TLSContext {
    /// Sets versions, suites and groups, and disables features, for either side.
    func limit(to minimumVersion: TLSVersion) throws(CertificateError) {
        try require(saltern_SSL_CTX_set_min_proto_version(pointer, minimumVersion.number) == 1, "set the TLS version")
        try require(saltern_SSL_CTX_set_max_proto_version(pointer, TLS1_3_VERSION) == 1, "set the TLS version")
        try require(
            SSL_CTX_set_ciphersuites(
                pointer, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384") == 1,
            "choose the cipher suites of TLS 1.3")
        // TLS 1.2 needs forward secrecy and authenticated encryption.
        try require(
            SSL_CTX_set_cipher_list(
                pointer,
                "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:"
                    + "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384") == 1,
            "choose the cipher suites of TLS 1.2")
        try require(saltern_SSL_CTX_set_groups_list(pointer, "X25519:P-256") == 1, "choose the key exchange groups")
        // SHA-1 and rare algorithms are absent. OpenSSL tries each offered one in every handshake, so a short list is
        // also fast.
        try require(
            saltern_SSL_CTX_set_sigalgs_list(
                pointer,
                "ECDSA+SHA256:ed25519:ECDSA+SHA384:ECDSA+SHA512:RSA-PSS+SHA256:RSA-PSS+SHA384:RSA-PSS+SHA512:RSA+SHA256:"
                    + "RSA+SHA384:RSA+SHA512") == 1,
            "choose the signature algorithms")
        // SSL_OP_IGNORE_UNEXPECTED_EOF stays off: a cut connection must differ from a closed one.
        saltern_SSL_CTX_disable_renegotiation_and_compression(pointer)
        // OpenSSL zeroes received bytes in its buffers, because they can be a key.
        saltern_SSL_CTX_cleanse_plaintext(pointer)
    }

    /// Releases the memory of idle connections, reads ahead, and permits partial writes.
    func reduceMemory() {
        _ = saltern_SSL_CTX_set_mode(
            pointer,
            Int(SSL_MODE_RELEASE_BUFFERS) | Int(SSL_MODE_ENABLE_PARTIAL_WRITE)
                | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        // A record then needs one system call instead of one for its header and one for the rest.
        _ = saltern_SSL_CTX_set_read_ahead(pointer, 1)
    }

    /// Throws OpenSSL's reasons when a setting was rejected.
    func require(_ isDone: Bool, _ operation: String) throws(CertificateError) {
        guard isDone else { throw .openSSL(OpenSSLError(draining: operation)) }
    }
}

/// The settings that all connections of a server share: identity, versions, suites, ticket keys.
///
/// One context serves all event loops, so a session ticket of one is valid on the others. To reload the certificate,
/// create a new context for new connections. The old one lives as long as its connections.
public final class TLSServerContext: Sendable {
    /// The served chain and key.
    public let identity: TLSIdentity

    let context: TLSContext

    /// Creates a context.
    /// - Parameters:
    ///   - identity: Chain and key, self-signed or from a public authority.
    ///   - minimumVersion: TLS 1.3 unless old clients have to be served.
    /// - Throws: ``CertificateError`` when OpenSSL rejects chain or key.
    public init(identity: TLSIdentity, minimumVersion: TLSVersion = .version13) throws(CertificateError) {
        self.identity = identity
        context = try TLSContext(method: TLS_server_method())
        try context.limit(to: minimumVersion)
        context.reduceMemory()
        try context.serve(identity)
        try context.resumeWithTickets()
        context.selectApplicationProtocol()
    }

    /// Reads chain and key from PEM files. Rejects a key file that others can read.
    public convenience init(
        certificateFile: String, keyFile: String, minimumVersion: TLSVersion = .version13
    ) throws(CertificateError) {
        try self.init(
            identity: TLSIdentity(certificateFile: certificateFile, keyFile: keyFile), minimumVersion: minimumVersion)
    }
}

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

/// A certificate chain and the private key of its first certificate.
public struct TLSIdentity: Sendable {
    /// The server's certificate, then those that link it to an authority.
    public let chain: [Certificate]
    /// The key of the first certificate.
    public let key: PrivateKey

    /// The server's own certificate.
    public let certificate: Certificate

    /// Joins a chain and its key. Rejects a key of another certificate.
    public init(chain: [Certificate], key: PrivateKey) throws(CertificateError) {
        guard let certificate = chain.first else { throw .noCertificate }
        OpenSSLError.clearQueue()
        guard X509_check_private_key(certificate.owner.pointer, key.owner.pointer) == 1 else {
            let error = OpenSSLError(draining: "compare key and certificate")
            if let index = chain.firstIndex(where: { $0.matches(key) }) { throw .wrongChainOrder(position: index + 1) }
            throw .keyDoesNotMatchCertificate(error)
        }
        self.certificate = certificate
        self.chain = chain
        self.key = key
    }

    /// Reads a PEM chain and a PEM key. Rejects a key file that others can read.
    public init(certificateFile: String, keyFile: String) throws(CertificateError) {
        try self.init(
            chain: Certificate.chain(contentsOf: certificateFile), key: PrivateKey(contentsOf: keyFile))
    }
}

/// The supported versions of TLS.
public enum TLSVersion: String, Sendable, Hashable, CaseIterable, Comparable {
    /// RFC 5246, with the AEAD suites only.
    case version12 = "TLSv1.2"
    /// RFC 8446.
    case version13 = "TLSv1.3"

    init?(number: Int32) {
        switch number {
        case TLS1_2_VERSION: self = .version12
        case TLS1_3_VERSION: self = .version13
        default: return nil
        }
    }

    var number: Int32 {
        switch self {
        case .version12: TLS1_2_VERSION
        case .version13: TLS1_3_VERSION
        }
    }

    public static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.number < right.number }
}

/// The only supported application protocol, and the search for it in a client's list.
enum ApplicationProtocol {
    /// The protocol's name in ALPN (RFC 7301 section 6).
    static let http1: StaticString = "http/1.1"

    /// Returns the offset of the name in a protocol list (RFC 7301 section 3.1: each name after a byte with its
    /// length).
    static func offset(ofHTTP1In list: UnsafeBufferPointer<UInt8>) -> Int? {
        var index = 0
        while index < list.count {
            let start = index + 1
            let end = start + Int(list[index])
            guard end <= list.count else { return nil }
            if end - start == http1.utf8CodeUnitCount,
                list[start..<end].elementsEqual(UnsafeBufferPointer(start: http1.utf8Start, count: end - start))
            {
                return start
            }
            index = end
        }
        return nil
    }
}
