internal import CommonCrypto
internal import CryptoKit

extension PBKDF2 {
    /// Fills `key`. Each length fits in 31 bits.
    static func derive(
        _ key: UnsafeMutableRawBufferPointer, from password: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer,
        _ digest: HMACDigest, rounds: Int32
    ) throws(Failure) {
        let function =
            switch digest {
            case .sha1: kCCPRFHmacAlgSHA1
            case .sha256: kCCPRFHmacAlgSHA256
            }
        // CommonCrypto rejects a null pointer for an empty password.
        let status = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1) { none in
            CCKeyDerivationPBKDF(
                CCPBKDFAlgorithm(kCCPBKDF2),
                password.baseAddress?.assumingMemoryBound(to: CChar.self) ?? UnsafePointer(none.baseAddress),
                password.count, salt.baseAddress?.assumingMemoryBound(to: UInt8.self), salt.count,
                CCPseudoRandomAlgorithm(function), UInt32(rounds),
                key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count)
        }
        guard status == kCCSuccess else { throw .library(LibraryError("derive a key with PBKDF2", status)) }
    }
}

extension HKDF {
    static func derive(
        _ output: UnsafeMutableRawBufferPointer, from key: UnsafeRawBufferPointer, salt: UnsafeRawBufferPointer,
        info: UnsafeRawBufferPointer
    ) {
        let derived = CryptoKit.HKDF<CryptoKit.SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: key), salt: salt, info: info, outputByteCount: output.count)
        derived.withUnsafeBytes { output.copyMemory(from: $0) }
    }
}
