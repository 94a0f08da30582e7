internal import CryptoKit

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
