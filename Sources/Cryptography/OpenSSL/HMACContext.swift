internal import COpenSSL

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
