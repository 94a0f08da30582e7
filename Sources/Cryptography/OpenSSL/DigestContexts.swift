internal import COpenSSL
internal import Glibc

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

    /// Writes 32 bytes. This is the last call.
    borrowing func finish(into digest: UnsafeMutablePointer<UInt8>) {
        requireSuccess(EVP_DigestFinal_ex(context, digest, nil), "finish SHA-256")
    }

    /// Computes the digest of a whole message, in the calling thread's own context.
    static func hash(_ bytes: UnsafeRawBufferPointer, into digest: UnsafeMutablePointer<UInt8>) {
        let context = ThreadDigestContext.current
        requireSuccess(EVP_DigestInit_ex2(context, FetchedAlgorithm.sha256.pointer, nil), "start SHA-256")
        requireSuccess(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count), "SHA-256")
        requireSuccess(EVP_DigestFinal_ex(context, digest, nil), "finish SHA-256")
    }
}

/// One digest context for each thread, so that hashing a token allocates nothing.
///
/// Use it only between two suspension points: start, update and finish in one synchronous function. It keeps no secret:
/// OpenSSL zeroes the block buffer when a digest is finished, and only the digest itself remains.
enum ThreadDigestContext {
    /// The calling thread's `EVP_MD_CTX *`, which the thread owns until it ends.
    static var current: OpaquePointer {
        if let existing = pthread_getspecific(key) { return OpaquePointer(existing) }
        let context = requireAllocated(EVP_MD_CTX_new(), "allocate a digest context")
        let stored = pthread_setspecific(key, UnsafeRawPointer(context))
        precondition(stored == 0, "no memory for a thread-specific value")
        return context
    }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let created = pthread_key_create(&key) { context in EVP_MD_CTX_free(OpaquePointer(context)) }
        precondition(created == 0, "the process has no thread-specific keys left")
        return key
    }()
}

/// Owns a keyed `EVP_MAC_CTX *`. OpenSSL zeroes the key when it frees it.
///
/// `@unchecked Sendable` is safe: after `init` the context is only the constant source of `EVP_MAC_CTX_dup`. Each
/// message is computed on a duplicate.
final class HMACContext: @unchecked Sendable {
    private let keyed: OpaquePointer

    init(_ digest: HMACDigest, key: some ByteSource) {
        keyed = requireAllocated(EVP_MAC_CTX_new(FetchedAlgorithm.hmac.pointer), "allocate HMAC")
        key.withContiguousBytes { key in
            // For OpenSSL a null key means "keep the old key", so an empty key needs an address.
            var none: UInt8 = 0
            let status =
                if let base = key.baseAddress {
                    saltern_EVP_MAC_init(keyed, base.assumingMemoryBound(to: UInt8.self), key.count, digest.name)
                } else {
                    saltern_EVP_MAC_init(keyed, &none, 0, digest.name)
                }
            requireSuccess(status, "set the key of HMAC")
        }
    }

    deinit { EVP_MAC_CTX_free(keyed) }

    func authenticate(_ message: some ByteSource, into code: UnsafeMutableBufferPointer<UInt8>) {
        let context = requireAllocated(EVP_MAC_CTX_dup(keyed), "copy HMAC")
        defer { EVP_MAC_CTX_free(context) }
        message.withContiguousBytes { bytes in
            let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            requireSuccess(EVP_MAC_update(context, base, bytes.count), "HMAC")
        }
        var length = 0
        requireSuccess(EVP_MAC_final(context, code.baseAddress, &length, code.count), "finish HMAC")
    }
}

extension HMACDigest {
    /// The algorithm's name in OpenSSL.
    fileprivate var name: String {
        switch self {
        case .sha1: "SHA1"
        case .sha256: "SHA256"
        }
    }
}
