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
