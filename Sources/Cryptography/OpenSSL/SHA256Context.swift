internal import COpenSSL

/// Owns an `EVP_MD_CTX *` that computes one digest.
struct SHA256Context: ~Copyable {
    private let context: OpaquePointer

    init() {
        context = requireAllocated(EVP_MD_CTX_new(), "allocate SHA-256")
        requireSuccess(EVP_DigestInit_ex2(context, FetchedAlgorithm.sha256.pointer, nil), "start SHA-256")
    }

    deinit { EVP_MD_CTX_free(context) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        requireSuccess(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count), "SHA-256")
    }

    /// Writes 32 bytes; to be called last.
    borrowing func finish(into digest: UnsafeMutablePointer<UInt8>) {
        requireSuccess(EVP_DigestFinal_ex(context, digest, nil), "finish SHA-256")
    }

    /// The digest of a whole message, in the calling thread's own context.
    static func hash(_ bytes: UnsafeRawBufferPointer, into digest: UnsafeMutablePointer<UInt8>) {
        let context = ThreadDigestContext.current
        requireSuccess(EVP_DigestInit_ex2(context, FetchedAlgorithm.sha256.pointer, nil), "start SHA-256")
        requireSuccess(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count), "SHA-256")
        requireSuccess(EVP_DigestFinal_ex(context, digest, nil), "finish SHA-256")
    }
}
