internal import CommonCrypto

extension AESCBC {
    /// - Returns: The number of bytes written.
    static func encrypt(
        _ plaintext: UnsafeRawBufferPointer, into ciphertext: UnsafeMutableRawBufferPointer, using key: SecureBytes,
        vector: [UInt8]
    ) throws(Failure) -> Int {
        try run(kCCEncrypt, kCCOptionPKCS7Padding, plaintext, into: ciphertext, using: key, vector: vector)
    }

    /// - Returns: The number of bytes written.
    static func decrypt(
        _ ciphertext: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer, using key: SecureBytes,
        vector: [UInt8]
    ) throws(Failure) -> Int {
        // CommonCrypto does not report wrong padding, so it is checked here.
        let count = try run(kCCDecrypt, 0, ciphertext, into: plaintext, using: key, vector: vector)
        let padding = Int(plaintext[count - 1])
        guard (1...blockByteCount).contains(padding),
            plaintext[(count - padding)..<count].allSatisfy({ Int($0) == padding })
        else { throw .wrongPadding }
        return count - padding
    }

    private static func run(
        _ operation: Int, _ options: Int, _ input: UnsafeRawBufferPointer,
        into output: UnsafeMutableRawBufferPointer, using key: SecureBytes, vector: [UInt8]
    ) throws(Failure) -> Int {
        var written = 0
        let status = key.withUnsafeBytes { key in
            CCCrypt(
                CCOperation(operation), CCAlgorithm(kCCAlgorithmAES), CCOptions(options), key.baseAddress, key.count,
                vector, input.baseAddress, input.count, output.baseAddress, output.count, &written)
        }
        guard status == kCCSuccess else { throw .library(LibraryError("AES-CBC", status)) }
        return written
    }
}
