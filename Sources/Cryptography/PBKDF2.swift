/// PBKDF2 with HMAC-SHA256 (RFC 8018 section 5.2): stretches a password into a key.
public enum PBKDF2 {
    /// The fewest iterations that ``deriveKey(from:salt:iterations:byteCount:)`` accepts, and its default
    /// (OWASP's recommendation for PBKDF2-HMAC-SHA256).
    public static let recommendedIterations = 600_000

    /// Why a key was not derived.
    public enum Failure: Error, Hashable, Sendable {
        /// Fewer iterations than the safe entry point accepts, or fewer than one.
        case tooFewIterations(minimum: Int)
        /// More iterations than 2³¹ − 1.
        case tooManyIterations(maximum: Int)
        /// RFC 8018 allows 1 to (2³² − 1) × 32 bytes; this 2³¹ − 1.
        case keyLengthOutOfRange
        /// A password or salt longer than 2³¹ − 1 bytes.
        case inputTooLong
        /// The platform's library failed.
        case library(LibraryError)
    }

    /// Derives a key, and refuses iteration counts that are too low to protect a password.
    /// - Parameters:
    ///   - password: The password, as UTF-8.
    ///   - salt: Unique to the site and to the person.
    ///   - iterations: At least ``recommendedIterations``.
    ///   - byteCount: The length of the key in bytes.
    /// - Returns: The key.
    /// - Throws: ``Failure`` when a length or count is out of bounds.
    public static func deriveKey(
        from password: some ByteSource, salt: some ByteSource, iterations: Int = recommendedIterations,
        byteCount: Int = 32
    ) throws(Failure) -> SecureBytes {
        guard iterations >= recommendedIterations else { throw .tooFewIterations(minimum: recommendedIterations) }
        return try deriveKey(
            from: password, salt: salt, unsafeUncheckedIterations: iterations, byteCount: byteCount)
    }

    /// Derives a key with any number of iterations, for parameters that were fixed long ago.
    ///
    /// Use it only to repeat a derivation whose parameters exist already; new ones belong to
    /// ``deriveKey(from:salt:iterations:byteCount:)``.
    public static func deriveKey(
        from password: some ByteSource, salt: some ByteSource, unsafeUncheckedIterations iterations: Int,
        byteCount: Int = 32
    ) throws(Failure) -> SecureBytes {
        try deriveKey(from: password, salt: salt, .sha256, iterations, byteCount)
    }

    /// Derives a key with HMAC-SHA1, for reading formats that exist (RNCryptor v3); nothing new uses it.
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
