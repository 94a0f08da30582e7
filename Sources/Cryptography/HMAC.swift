internal import COpenSSL

/// HMAC-SHA256 (RFC 2104, RFC 4231).
public enum HMACSHA256 {
    /// The authentication code of one message. For many messages under one key, keep a ``Key``.
    public static func authenticationCode(for message: some ByteSource, using key: some ByteSource) -> SHA256Digest {
        Key(key).authenticationCode(for: message)
    }

    /// A key that was processed once and authenticates any number of messages, from any thread.
    public struct Key: Sendable {
        private let template: HMACContext

        /// Takes a key of any length; RFC 2104 advises 32 bytes or more.
        public init(_ key: some ByteSource) {
            template = HMACContext(digest: "SHA256", key: key)
        }

        /// The authentication code of `message`.
        public func authenticationCode(for message: some ByteSource) -> SHA256Digest {
            SHA256Digest { code in
                template.authenticate(message, into: UnsafeMutableBufferPointer(start: code, count: 32))
            }
        }
    }
}

/// HMAC-SHA1, for one-time passwords only: authenticator apps speak RFC 4226 and RFC 6238 with SHA-1.
public enum HMACSHA1 {
    /// The 20-byte authentication code of `message`.
    public static func authenticationCode(for message: some ByteSource, using key: some ByteSource) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 20) { code, initialized in
            HMACContext(digest: "SHA1", key: key)
                .authenticate(message, into: UnsafeMutableBufferPointer(rebasing: code[..<20]))
            initialized = 20
        }
    }
}

/// Owns a keyed `EVP_MAC_CTX *`. OpenSSL wipes the key when it frees it.
///
/// `@unchecked Sendable` is safe: after `init` the context is only ever the constant source of
/// `EVP_MAC_CTX_dup`, and each message is computed on a duplicate of its own.
private final class HMACContext: @unchecked Sendable {
    private let keyed: OpaquePointer

    init(digest: String, key: some ByteSource) {
        keyed = requireAllocated(EVP_MAC_CTX_new(FetchedAlgorithm.hmac.pointer), "allocate HMAC")
        key.withContiguousBytes { key in
            // A null key means "keep the old key" to OpenSSL, so an empty one is given an address.
            var none: UInt8 = 0
            let status =
                if let base = key.baseAddress {
                    saltern_EVP_MAC_init(keyed, base.assumingMemoryBound(to: UInt8.self), key.count, digest)
                } else {
                    saltern_EVP_MAC_init(keyed, &none, 0, digest)
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
