internal import COpenSSL

/// SHA-256 (FIPS 180-4).
public enum SHA256 {
    /// The digest of one contiguous message. Allocates nothing after the first call of a thread.
    public static func hash(_ message: some ByteSource) -> SHA256Digest {
        message.withContiguousBytes { bytes in
            let context = ThreadDigestContext.current
            requireSuccess(EVP_DigestInit_ex2(context, FetchedAlgorithm.sha256.pointer, nil), "start SHA-256")
            requireSuccess(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count), "SHA-256")
            return SHA256Digest { digest in
                requireSuccess(EVP_DigestFinal_ex(context, digest, nil), "finish SHA-256")
            }
        }
    }

    /// Hashes a message that arrives in parts.
    public struct Incremental: ~Copyable {
        /// `EVP_MD_CTX *`, owned.
        private let context: OpaquePointer

        public init() {
            context = requireAllocated(EVP_MD_CTX_new(), "allocate SHA-256")
            requireSuccess(EVP_DigestInit_ex2(context, FetchedAlgorithm.sha256.pointer, nil), "start SHA-256")
        }

        deinit { EVP_MD_CTX_free(context) }

        /// Appends `part` to the message.
        public mutating func update(_ part: some ByteSource) {
            part.withContiguousBytes { bytes in
                requireSuccess(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count), "SHA-256")
            }
        }

        /// The digest of all parts.
        public consuming func finalize() -> SHA256Digest {
            SHA256Digest { digest in
                requireSuccess(EVP_DigestFinal_ex(context, digest, nil), "finish SHA-256")
            }
        }
    }
}
