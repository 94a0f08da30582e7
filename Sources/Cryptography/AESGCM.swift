/// AES-256-GCM (NIST SP 800-38D): encrypts and authenticates.
///
/// The combined form is `nonce || ciphertext || tag`, with a tag of 16 bytes.
public enum AESGCM {
    /// The size of a key, in bytes.
    public static let keyByteCount = 32
    /// The size of the authentication tag, in bytes.
    public static let tagByteCount = 16

    /// The nonce lengths in use, in bytes.
    public enum NonceLength: Int, Sendable {
        /// The length that SP 800-38D recommends.
        case twelve = 12
        /// The length that some older applications use.
        case sixteen = 16
    }

    /// The reason for which nothing was sealed or opened.
    public enum Failure: Error, Hashable, Sendable {
        /// The key is not 32 bytes.
        case wrongKeyLength
        /// The nonce is neither 12 nor 16 bytes.
        case wrongNonceLength
        /// The sealed bytes are shorter than nonce and tag, or longer than the platform's library accepts.
        case wrongLength
        /// The tag does not match: another key, other authenticated data, or changed bytes.
        case authenticationFailed
        /// The platform's library failed.
        case library(LibraryError)
    }

    /// Seals `plaintext` under a fresh random nonce.
    /// - Returns: `nonce || ciphertext || tag`.
    public static func seal(
        _ plaintext: some ByteSource, using key: SecureBytes, nonceLength: NonceLength = .twelve,
        authenticating authenticatedData: some ByteSource = [UInt8]()
    ) throws(Failure) -> [UInt8] {
        try seal(
            plaintext, using: key, uniqueNonce: SecureRandom.bytes(nonceLength.rawValue),
            authenticating: authenticatedData)
    }

    /// Seals `plaintext` under a nonce of the caller.
    ///
    /// Never use a nonce twice with one key: a repetition discloses the authentication key.
    /// - Returns: `nonce || ciphertext || tag`.
    public static func seal(
        _ plaintext: some ByteSource, using key: SecureBytes, uniqueNonce nonce: [UInt8],
        authenticating authenticatedData: some ByteSource = [UInt8]()
    ) throws(Failure) -> [UInt8] {
        try check(key, nonceByteCount: nonce.count)
        return try plaintext.withContiguousBytes { plaintext throws(Failure) in
            let total = nonce.count + plaintext.count + tagByteCount
            var sealed = [UInt8](repeating: 0, count: total)
            sealed.replaceSubrange(..<nonce.count, with: nonce)
            try sealed.withUnsafeMutableBufferPointer { buffer throws(Failure) in
                let buffer = UnsafeMutableRawBufferPointer(buffer)
                let nonce = UnsafeRawBufferPointer(rebasing: buffer[..<nonce.count])
                try authenticatedData.withContiguousBytes { authenticatedData throws(Failure) in
                    try encrypt(
                        plaintext, using: key, nonce: nonce.bytes, authenticating: authenticatedData,
                        into: UnsafeMutableRawBufferPointer(rebasing: buffer[nonce.count..<total - tagByteCount]),
                        tag: UnsafeMutableRawBufferPointer(rebasing: buffer[(total - tagByteCount)...]))
                }
            }
            return sealed
        }
    }

    /// Opens `nonce || ciphertext || tag`. Returns nothing unless the tag matches.
    public static func open(
        _ sealed: some ByteSource, using key: SecureBytes, nonceLength: NonceLength = .twelve,
        authenticating authenticatedData: some ByteSource = [UInt8]()
    ) throws(Failure) -> SecureBytes {
        try sealed.withContiguousBytes { sealed throws(Failure) in
            let length = sealed.count - nonceLength.rawValue - tagByteCount
            guard length >= 0 else { throw .wrongLength }
            let nonce = UnsafeRawBufferPointer(rebasing: sealed[..<nonceLength.rawValue])
            let ciphertext = UnsafeRawBufferPointer(
                rebasing: sealed[nonceLength.rawValue..<sealed.count - tagByteCount])
            let tag = UnsafeRawBufferPointer(rebasing: sealed[(sealed.count - tagByteCount)...])

            try check(key, nonceByteCount: nonce.count)
            return try SecureBytes(count: length) { plaintext throws(Failure) in
                try authenticatedData.withContiguousBytes { authenticatedData throws(Failure) in
                    try decrypt(
                        ciphertext, tag: tag, using: key, nonce: nonce.bytes, authenticating: authenticatedData,
                        into: plaintext)
                }
            }
        }
    }

    private static func check(_ key: SecureBytes, nonceByteCount: Int) throws(Failure) {
        guard key.count == keyByteCount else { throw .wrongKeyLength }
        guard NonceLength(rawValue: nonceByteCount) != nil else { throw .wrongNonceLength }
    }
}
