/// HKDF with HMAC-SHA256 (RFC 5869): derives keys for different purposes from one key.
public enum HKDF {
    /// The maximum number of derived bytes (RFC 5869 section 2.3).
    public static let maximumByteCount = 255 * SHA256Digest.byteCount

    /// Derives a key by extract and expand.
    /// - Parameters:
    ///   - key: Input keying material, at least one byte.
    ///   - salt: May be empty, which stands for 32 zero bytes.
    ///   - info: The purpose of the derived key, different for each purpose.
    ///   - byteCount: 1 to ``maximumByteCount``.
    public static func deriveKey(
        from key: some ByteSource, salt: some ByteSource = [UInt8](), info: some ByteSource, byteCount: Int = 32
    ) -> SecureBytes {
        precondition((1...maximumByteCount).contains(byteCount), "HKDF derives 1 to 8,160 bytes")
        return key.withContiguousBytes { key in
            salt.withContiguousBytes { salt in
                info.withContiguousBytes { info in
                    SecureBytes(count: byteCount) { derive($0, from: key, salt: salt, info: info) }
                }
            }
        }
    }
}
