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

/// The 32 bytes of a SHA-256 digest, stored inline: no allocation, cheap to copy and to keep in a table.
///
/// Equality takes constant time. The description is redacted, because some digests (a password verifier, the hash of a
/// token) must not reach a log. Use ``bytes`` to show a digest.
public struct SHA256Digest: Sendable {
    /// The size of every digest, in bytes.
    public static let byteCount = 32

    /// The bytes as four words in memory order.
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    /// All zeros: the predecessor of the first digest in a chain.
    public static let zero = SHA256Digest()

    private init() {}

    /// Creates a digest by `fill`, which must write all 32 bytes.
    init(filledBy fill: (UnsafeMutablePointer<UInt8>) -> Void) {
        withUnsafeMutableBytes(of: &words) { buffer in
            buffer.withMemoryRebound(to: UInt8.self) { bytes in
                if let base = bytes.baseAddress { fill(base) }
            }
        }
    }

    /// Creates a digest from bytes that were computed or stored earlier. Returns `nil` unless there are exactly 32
    /// bytes.
    public init?(_ source: some ByteSource) {
        let isComplete = source.withContiguousBytes { bytes in
            guard bytes.count == Self.byteCount else { return false }
            withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
            return true
        }
        if !isComplete { return nil }
    }

    /// The bytes as an array.
    public var bytes: [UInt8] {
        withUnsafeBytes { [UInt8]($0) }
    }

    /// Calls `body` with the bytes. The buffer is valid only until `body` returns.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try Swift.withUnsafeBytes(of: words, body)
    }
}

extension SHA256Digest: ByteSource {
    public func withContiguousBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes(body)
    }
}

extension SHA256Digest: Hashable {
    /// Compares in constant time.
    public static func == (left: SHA256Digest, right: SHA256Digest) -> Bool {
        constantTimeEquals(left, right)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}

extension SHA256Digest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "SHA256Digest(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
