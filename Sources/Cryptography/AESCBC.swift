/// AES-256-CBC with PKCS #7 padding (NIST SP 800-38A, RFC 5652 section 6.3): encrypts, and does not authenticate.
///
/// Exists for established formats, which authenticate the ciphertext by other means. Compare their code before
/// decrypting.
public enum AESCBC {
    /// The size of a key, in bytes.
    public static let keyByteCount = 32
    /// The size of a block and of an initialisation vector, in bytes.
    public static let blockByteCount = 16

    /// The reason for which nothing was encrypted or decrypted.
    public enum Failure: Error, Hashable, Sendable {
        /// The key is not 32 bytes.
        case wrongKeyLength
        /// The initialisation vector is not 16 bytes.
        case wrongVectorLength
        /// The ciphertext is empty, not a whole number of blocks, or longer than the platform's library accepts.
        case wrongLength
        /// The padding violates PKCS #7: another key, or changed bytes.
        case wrongPadding
        /// The platform's library failed.
        case library(LibraryError)
    }

    /// Encrypts `plaintext`. The result is 1 to 16 bytes longer.
    /// - Parameter vector: Random bytes, never used twice with one key.
    public static func encrypt(
        _ plaintext: some ByteSource, using key: SecureBytes, vector: [UInt8]
    ) throws(Failure) -> [UInt8] {
        try plaintext.withContiguousBytes { plaintext throws(Failure) in
            let count = (plaintext.count / blockByteCount + 1) * blockByteCount
            var ciphertext = [UInt8](repeating: 0, count: count)
            let written = try ciphertext.withUnsafeMutableBufferPointer { output throws(Failure) in
                try check(key, vector)
                return try encrypt(plaintext, into: UnsafeMutableRawBufferPointer(output), using: key, vector: vector)
            }
            precondition(written == count, "PKCS #7 pads to the next whole block")
            return ciphertext
        }
    }

    /// Decrypts the result of ``encrypt(_:using:vector:)``.
    public static func decrypt(
        _ ciphertext: some ByteSource, using key: SecureBytes, vector: [UInt8]
    ) throws(Failure) -> SecureBytes {
        try ciphertext.withContiguousBytes { ciphertext throws(Failure) in
            guard !ciphertext.isEmpty, ciphertext.count % blockByteCount == 0 else { throw .wrongLength }
            var written = 0
            let padded = try SecureBytes(count: ciphertext.count) { output throws(Failure) in
                try check(key, vector)
                written = try decrypt(ciphertext, into: output, using: key, vector: vector)
            }
            return padded.withUnsafeBytes { SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<written])) }
        }
    }

    private static func check(_ key: SecureBytes, _ vector: [UInt8]) throws(Failure) {
        guard key.count == keyByteCount else { throw .wrongKeyLength }
        guard vector.count == blockByteCount else { throw .wrongVectorLength }
    }
}
