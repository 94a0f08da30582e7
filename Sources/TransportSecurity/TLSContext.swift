internal import COpenSSL
internal import Cryptography

/// Owns an `SSL_CTX *`.
///
/// `@unchecked Sendable` is safe: the context is configured before it is shared, never changed afterwards, and
/// OpenSSL guards what connections share through it (reference counts, ticket keys) itself.
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
        // The context takes a reference of its own to everything it is given here.
        guard let rest = saltern_X509_stack_new() else { throw .openSSL(OpenSSLError(draining: "allocate a chain")) }
        defer { saltern_X509_stack_free(rest) }
        for certificate in identity.chain.dropFirst() {
            try require(saltern_X509_stack_push(rest, certificate.owner.pointer) > 0, "install the chain")
        }
        try require(saltern_SSL_CTX_set_chain(pointer, rest) == 1, "install the chain")
        // Otherwise OpenSSL would look for missing certificates, and verify signatures, in every handshake.
        _ = saltern_SSL_CTX_set_mode(pointer, Int(SSL_MODE_NO_AUTO_CHAIN))
        try require(SSL_CTX_use_PrivateKey(pointer, identity.key.owner.pointer) == 1, "install the key")
        try require(SSL_CTX_check_private_key(pointer) == 1, "compare key and certificate")
        // Our order puts the suite first that costs least on both sides, except that a client which asks for
        // ChaCha20 first (a phone without AES instructions) gets it.
        saltern_SSL_CTX_prefer_server_ciphers(pointer)
        SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
        // Otherwise a client that sends nothing but key updates would keep one read, and with it the whole event
        // loop, busy for as long as it likes. Now a read takes what was read ahead and the loop goes round.
        _ = saltern_SSL_CTX_clear_mode(pointer, Int(SSL_MODE_AUTO_RETRY))
    }

    /// Resumption by tickets that the client keeps: no memory here, and good on every loop.
    ///
    /// OpenSSL draws the key of the tickets with the context and takes them for two hours. A TLS 1.3 resumption
    /// still agrees on a fresh key (RFC 8446 section 2.2), so that a stolen ticket key opens no recorded traffic.
    func resumeWithTickets() throws(CertificateError) {
        _ = saltern_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        let name = Array("saltern".utf8)
        try require(SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count)) == 1, "name the sessions")
        // One instead of OpenSSL's two: a second ticket costs its encryption and a quarter of a kilobyte in
        // every handshake, and only a client that opens several connections at once could use it.
        try require(SSL_CTX_set_num_tickets(pointer, 1) == 1, "limit the tickets")
        // Early data could be replayed; a credential server takes none.
        try require(SSL_CTX_set_max_early_data(pointer, 0) == 1, "refuse early data")
        try require(SSL_CTX_set_recv_max_early_data(pointer, 0) == 1, "refuse early data")
    }

    /// ALPN (RFC 7301): `http/1.1`, or an alert when the client offers only other protocols. A client that does
    /// not use ALPN is served.
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
    /// Versions, suites, groups, and what is off, for either side.
    func limit(to minimumVersion: TLSVersion) throws(CertificateError) {
        try require(saltern_SSL_CTX_set_min_proto_version(pointer, minimumVersion.number) == 1, "set the TLS version")
        try require(saltern_SSL_CTX_set_max_proto_version(pointer, TLS1_3_VERSION) == 1, "set the TLS version")
        try require(
            SSL_CTX_set_ciphersuites(
                pointer, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384") == 1,
            "choose the cipher suites of TLS 1.3")
        // TLS 1.2 only with forward secrecy and authenticated encryption.
        try require(
            SSL_CTX_set_cipher_list(
                pointer,
                "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:"
                    + "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384") == 1,
            "choose the cipher suites of TLS 1.2")
        try require(saltern_SSL_CTX_set_groups_list(pointer, "X25519:P-256") == 1, "choose the key exchange groups")
        // Without SHA-1 and the rarely used ones; OpenSSL tries each one offered in every handshake, so that a
        // short list is also a fast one.
        try require(
            saltern_SSL_CTX_set_sigalgs_list(
                pointer,
                "ECDSA+SHA256:ed25519:ECDSA+SHA384:ECDSA+SHA512:RSA-PSS+SHA256:RSA-PSS+SHA384:RSA-PSS+SHA512:RSA+SHA256:"
                    + "RSA+SHA384:RSA+SHA512") == 1,
            "choose the signature algorithms")
        // SSL_OP_IGNORE_UNEXPECTED_EOF stays off: a connection that was cut off must not look like one that
        // was closed.
        saltern_SSL_CTX_disable_renegotiation_and_compression(pointer)
        // What was read is zeroed in the buffers of OpenSSL: it can be a key.
        saltern_SSL_CTX_cleanse_plaintext(pointer)
    }

    /// Gives memory back whenever a connection is idle, reads ahead, and lets a write stop half-way.
    func reduceMemory() {
        _ = saltern_SSL_CTX_set_mode(
            pointer,
            Int(SSL_MODE_RELEASE_BUFFERS) | Int(SSL_MODE_ENABLE_PARTIAL_WRITE)
                | Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER))
        // One system call for a record instead of one for its header and one for the rest.
        _ = saltern_SSL_CTX_set_read_ahead(pointer, 1)
    }

    /// Throws OpenSSL's reasons when a setting was refused.
    func require(_ isDone: Bool, _ operation: String) throws(CertificateError) {
        guard isDone else { throw .openSSL(OpenSSLError(draining: operation)) }
    }
}
