internal import COpenSSL
internal import Cryptography
internal import Glibc

extension Certificate {
    /// Why a TLS client would refuse the certificate, in OpenSSL's words; `nil` when it would not.
    ///
    /// A self-issued certificate is verified against itself as the only anchor, with the strict rules of
    /// RFC 5280; any other against the system's authorities.
    /// - Parameters:
    ///   - intermediates: The certificates that link it to an authority.
    ///   - now: The time of the verification, in seconds since 1970 (UTC).
    /// - Returns: The reason, or `nil`.
    func verificationFailure(intermediates: [Certificate], at now: Int64) -> String? {
        OpenSSLError.clearQueue()
        defer { OpenSSLError.clearQueue() }
        guard let store = X509_STORE_new() else { return "no memory" }
        defer { X509_STORE_free(store) }
        let hasAnchors =
            isSelfIssued ? X509_STORE_add_cert(store, owner.pointer) : X509_STORE_set_default_paths(store)
        guard hasAnchors == 1 else { return "\(OpenSSLError(draining: "find the anchors"))" }

        guard let untrusted = saltern_X509_stack_new() else { return "no memory" }
        defer { saltern_X509_stack_free(untrusted) }
        for certificate in intermediates {
            guard saltern_X509_stack_push(untrusted, certificate.owner.pointer) > 0 else { return "no memory" }
        }

        guard let context = X509_STORE_CTX_new() else { return "no memory" }
        defer { X509_STORE_CTX_free(context) }
        guard X509_STORE_CTX_init(context, store, owner.pointer, untrusted) == 1,
            X509_STORE_CTX_set_default(context, "ssl_server") == 1
        else { return "\(OpenSSLError(draining: "set up the verification"))" }
        let flags = isSelfIssued ? UInt(X509_V_FLAG_X509_STRICT) | UInt(X509_V_FLAG_CHECK_SS_SIGNATURE) : 0
        X509_STORE_CTX_set_flags(context, flags)
        X509_STORE_CTX_set_time(context, 0, time_t(now))
        guard X509_verify_cert(context) != 1 else { return nil }
        return String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(context))))
    }
}
