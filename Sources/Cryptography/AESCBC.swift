internal import COpenSSL

/// AES-256-CBC with PKCS #7 padding (NIST SP 800-38A, RFC 5652 section 6.3): encrypts, and does not authenticate.
///
/// For formats that exist, which authenticate what this returns by other means; compare their code before decrypting.
public enum AESCBC {
    /// The size of a key, in bytes.
    public static let keyByteCount = 32
    /// The size of a block and of an initialisation vector, in bytes.
    public static let blockByteCount = 16

    /// Why nothing was encrypted or decrypted.
    public enum Failure: Error, Hashable, Sendable {
        /// The key is not 32 bytes.
        case wrongKeyLength
        /// The initialisation vector is not 16 bytes.
        case wrongVectorLength
        /// The ciphertext is no whole number of blocks, none at all, or longer than OpenSSL can take.
        case wrongLength
        /// The padding is not what PKCS #7 says: another key, or changed bytes.
        case wrongPadding
        /// OpenSSL failed.
        case openSSL(OpenSSLError)
    }

    /// Encrypts `plaintext`; the result is one to sixteen bytes longer.
    /// - Parameter vector: Random, and never used twice with one key.
    public static func encrypt(
        _ plaintext: some ByteSource, using key: SecureBytes, vector: [UInt8]
    ) throws(Failure) -> [UInt8] {
        try plaintext.withContiguousBytes { plaintext throws(Failure) in
            let count = (plaintext.count / blockByteCount + 1) * blockByteCount
            var ciphertext = [UInt8](repeating: 0, count: count)
            var span = ciphertext.mutableSpan
            let written = try span.withUnsafeMutableBytes { output throws(Failure) in
                try run(plaintext, into: output, using: key, vector: vector, encrypts: true)
            }
            precondition(written == count, "PKCS #7 pads to the next whole block")
            return ciphertext
        }
    }

    /// Decrypts what ``encrypt(_:using:vector:)`` returned.
    public static func decrypt(
        _ ciphertext: some ByteSource, using key: SecureBytes, vector: [UInt8]
    ) throws(Failure) -> SecureBytes {
        try ciphertext.withContiguousBytes { ciphertext throws(Failure) in
            guard !ciphertext.isEmpty, ciphertext.count % blockByteCount == 0 else { throw .wrongLength }
            var written = 0
            let padded = try SecureBytes(count: ciphertext.count) { output throws(Failure) in
                written = try run(ciphertext, into: output, using: key, vector: vector, encrypts: false)
            }
            return padded.withUnsafeBytes { SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<written])) }
        }
    }

    private static func run(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, using key: SecureBytes,
        vector: [UInt8], encrypts: Bool
    ) throws(Failure) -> Int {
        guard key.count == keyByteCount else { throw .wrongKeyLength }
        guard vector.count == blockByteCount else { throw .wrongVectorLength }
        guard let length = Int32(exactly: input.count), let target = output.baseAddress else { throw .wrongLength }
        let context = requireAllocated(EVP_CIPHER_CTX_new(), "allocate AES-CBC")
        defer { EVP_CIPHER_CTX_free(context) }
        let isReady = key.withUnsafeBytes { key in
            EVP_CipherInit_ex2(
                context, FetchedAlgorithm.aes256CBC.pointer, key.baseAddress?.assumingMemoryBound(to: UInt8.self),
                vector, encrypts ? 1 : 0, nil)
        }
        guard isReady == 1 else { throw .openSSL(OpenSSLError(draining: "set up AES-CBC")) }
        let bytes = target.assumingMemoryBound(to: UInt8.self)
        var updated: Int32 = 0
        var none: UInt8 = 0
        let source = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let status =
            if let source {
                EVP_CipherUpdate(context, bytes, &updated, source, length)
            } else {
                EVP_CipherUpdate(context, bytes, &updated, &none, 0)
            }
        guard status == 1 else { throw .openSSL(OpenSSLError(draining: "AES-CBC")) }
        var finished: Int32 = 0
        guard EVP_CipherFinal_ex(context, bytes + Int(updated), &finished) == 1 else {
            OpenSSLError.clearQueue()
            throw .wrongPadding
        }
        return Int(updated) + Int(finished)
    }
}
