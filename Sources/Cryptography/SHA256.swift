/// SHA-256 (FIPS 180-4).
public enum SHA256 {
    /// Returns the digest of one contiguous message. Allocates nothing after the first call of a thread.
    public static func hash(_ message: some ByteSource) -> SHA256Digest {
        message.withContiguousBytes { bytes in
            SHA256Digest { SHA256Context.hash(bytes, into: $0) }
        }
    }

    /// Hashes a message that arrives in parts.
    public struct Incremental: ~Copyable {
        private var context = SHA256Context()

        /// Creates a digest of no bytes.
        public init() {}

        /// Appends `part` to the message.
        public mutating func update(_ part: some ByteSource) {
            part.withContiguousBytes { context.update($0) }
        }

        /// Returns the digest of all parts.
        public consuming func finalize() -> SHA256Digest {
            SHA256Digest { context.finish(into: $0) }
        }
    }
}
