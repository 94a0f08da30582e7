internal import COpenSSL

/// Bytes from OpenSSL's cryptographically secure generator.
///
/// A generator that cannot be seeded stops the process: a credential server that goes on without randomness
/// would hand out guessable tokens, and no caller could do anything better about it.
public enum SecureRandom {
    /// Fills `buffer`.
    public static func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
        let filled = RAND_bytes_ex(nil, base.assumingMemoryBound(to: UInt8.self), buffer.count, 0)
        precondition(filled == 1, "\(OpenSSLError(draining: "no secure randomness, refusing to go on"))")
    }

    /// `count` random bytes, for values that are published or hashed, such as nonces and identifiers.
    public static func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            fill(UnsafeMutableRawBufferPointer(buffer))
            initialized = count
        }
    }

    /// `count` random bytes that stay secret: keys and tokens. They come from the generator that OpenSSL keeps
    /// apart for private values, so that nothing published was drawn from the same state.
    public static func secureBytes(_ count: Int) -> SecureBytes {
        SecureBytes(count: count) { buffer in
            guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
            let filled = RAND_priv_bytes_ex(nil, base.assumingMemoryBound(to: UInt8.self), buffer.count, 0)
            precondition(filled == 1, "\(OpenSSLError(draining: "no secure randomness, refusing to go on"))")
        }
    }
}
