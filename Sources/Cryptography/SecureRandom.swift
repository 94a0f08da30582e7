/// Bytes from the platform's cryptographically secure generator.
///
/// A generator that cannot be seeded stops the process: a credential server that goes on without randomness
/// would hand out guessable tokens, and no caller could do anything better about it.
public enum SecureRandom {
    /// Fills `buffer`.
    public static func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
        draw(base.assumingMemoryBound(to: UInt8.self), buffer.count)
    }

    /// `count` random bytes, for values that are published or hashed, such as nonces and identifiers.
    public static func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            fill(UnsafeMutableRawBufferPointer(buffer))
            initialized = count
        }
    }

    /// `count` random bytes that stay secret: keys and tokens. Where the platform has a generator of its own for these,
    /// they come from it.
    public static func secureBytes(_ count: Int) -> SecureBytes {
        SecureBytes(count: count) { buffer in
            guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
            drawSecret(base.assumingMemoryBound(to: UInt8.self), buffer.count)
        }
    }
}
