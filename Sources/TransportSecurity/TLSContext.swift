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
