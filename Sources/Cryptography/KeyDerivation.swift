/// PBKDF2 with HMAC-SHA256 (RFC 8018 section 5.2): derives a key from a password.
public enum PBKDF2 {
    /// The minimum and default of iterations in ``deriveKey(from:salt:iterations:byteCount:)``: OWASP's recommendation
    /// for PBKDF2-HMAC-SHA256.
    public static let recommendedIterations = 600_000

    /// The reason for which no key was derived.
    public enum Failure: Error, Hashable, Sendable {
        /// Fewer iterations than the checked function accepts, or fewer than one.
        case tooFewIterations(minimum: Int)
        /// More iterations than 2³¹ − 1.
        case tooManyIterations(maximum: Int)
        /// The key length is outside 1 to 2³¹ − 1 bytes. (RFC 8018 allows up to (2³² − 1) × 32 bytes.)
        case keyLengthOutOfRange
        /// A password or salt longer than 2³¹ − 1 bytes.
        case inputTooLong
        /// The platform's library failed.
        case library(LibraryError)
    }

    /// Derives a key, and rejects iteration counts that are too low to protect a password.
    /// - Parameters:
    ///   - password: The password, as UTF-8.
    ///   - salt: Unique to the installation and to the user.
    ///   - iterations: At least ``recommendedIterations``.
    ///   - byteCount: The length of the key in bytes.
    /// - Throws: ``Failure`` when a length or count is out of bounds.
    public static func deriveKey(
        from password: some ByteSource, salt: some ByteSource, iterations: Int = recommendedIterations,
        byteCount: Int = 32
    ) throws(Failure) -> SecureBytes {
        guard iterations >= recommendedIterations else { throw .tooFewIterations(minimum: recommendedIterations) }
        return try deriveKey(
            from: password, salt: salt, unsafeUncheckedIterations: iterations, byteCount: byteCount)
    }

    /// Derives a key with any number of iterations, to repeat a derivation with existing parameters.
    ///
    /// New parameters belong to ``deriveKey(from:salt:iterations:byteCount:)``.
    public static func deriveKey(
        from password: some ByteSource, salt: some ByteSource, unsafeUncheckedIterations iterations: Int,
        byteCount: Int = 32
    ) throws(Failure) -> SecureBytes {
        try deriveKey(from: password, salt: salt, .sha256, iterations, byteCount)
    }

    /// Derives a key with HMAC-SHA1, to read existing formats (RNCryptor v3). New formats do not use it.
    public static func deriveKeyWithSHA1(
        from password: some ByteSource, salt: some ByteSource, iterations: Int, byteCount: Int = 32
    ) throws(Failure) -> SecureBytes {
        try deriveKey(from: password, salt: salt, .sha1, iterations, byteCount)
    }

    private static func deriveKey(
        from password: some ByteSource, salt: some ByteSource, _ digest: HMACDigest, _ iterations: Int,
        _ byteCount: Int
    ) throws(Failure) -> SecureBytes {
        guard iterations >= 1 else { throw .tooFewIterations(minimum: 1) }
        guard let rounds = Int32(exactly: iterations) else { throw .tooManyIterations(maximum: Int(Int32.max)) }
        guard byteCount >= 1, byteCount <= Int32.max else { throw .keyLengthOutOfRange }
        return try password.withContiguousBytes { password throws(Failure) in
            try salt.withContiguousBytes { salt throws(Failure) in
                guard password.count <= Int32.max, salt.count <= Int32.max else { throw .inputTooLong }
                return try SecureBytes(count: byteCount) { key throws(Failure) in
                    try derive(key, from: password, salt: salt, digest, rounds: rounds)
                }
            }
        }
    }
}

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
