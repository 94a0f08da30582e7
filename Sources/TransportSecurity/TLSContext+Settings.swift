internal import COpenSSL
internal import Cryptography

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
