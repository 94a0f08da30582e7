internal import COpenSSL

extension AESCBC {
    /// - Returns: The number of bytes written.
    static func encrypt(
        _ plaintext: UnsafeRawBufferPointer, into ciphertext: UnsafeMutableRawBufferPointer, using key: SecureBytes,
        vector: [UInt8]
    ) throws(Failure) -> Int {
        try run(plaintext, into: ciphertext, using: key, vector: vector, encrypts: true)
    }

    /// - Returns: The number of bytes written.
    static func decrypt(
        _ ciphertext: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer, using key: SecureBytes,
        vector: [UInt8]
    ) throws(Failure) -> Int {
        try run(ciphertext, into: plaintext, using: key, vector: vector, encrypts: false)
    }

    private static func run(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, using key: SecureBytes,
        vector: [UInt8], encrypts: Bool
    ) throws(Failure) -> Int {
        guard let length = Int32(exactly: input.count), let target = output.baseAddress else { throw .wrongLength }
        let context = requireAllocated(EVP_CIPHER_CTX_new(), "allocate AES-CBC")
        defer { EVP_CIPHER_CTX_free(context) }
        let isReady = key.withUnsafeBytes { key in
            EVP_CipherInit_ex2(
                context, FetchedAlgorithm.aes256CBC.pointer, key.baseAddress?.assumingMemoryBound(to: UInt8.self),
                vector, encrypts ? 1 : 0, nil)
        }
        guard isReady == 1 else { throw .library(OpenSSLError(draining: "set up AES-CBC")) }
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
        guard status == 1 else { throw .library(OpenSSLError(draining: "AES-CBC")) }
        var finished: Int32 = 0
        guard EVP_CipherFinal_ex(context, bytes + Int(updated), &finished) == 1 else {
            OpenSSLError.clearQueue()
            throw .wrongPadding
        }
        return Int(updated) + Int(finished)
    }
}
