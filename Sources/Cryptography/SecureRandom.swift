/// Bytes from the platform's cryptographically secure generator.
///
/// Stops the process if the generator cannot be seeded: without randomness a credential server would issue guessable
/// tokens. A caller has no better response.
public enum SecureRandom {
    /// Fills `buffer` with random bytes.
    public static func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
        draw(base.assumingMemoryBound(to: UInt8.self), buffer.count)
    }

    /// Returns `count` random bytes for values that are published or hashed, such as nonces and identifiers.
    public static func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            fill(UnsafeMutableRawBufferPointer(buffer))
            initialized = count
        }
    }

    /// Returns `count` random bytes that stay secret: keys and tokens. If the platform has a separate generator for
    /// these, it supplies them.
    public static func secureBytes(_ count: Int) -> SecureBytes {
        SecureBytes(count: count) { buffer in
            guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
            drawSecret(base.assumingMemoryBound(to: UInt8.self), buffer.count)
        }
    }
}
