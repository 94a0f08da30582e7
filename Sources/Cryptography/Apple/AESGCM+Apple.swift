internal import CryptoKit
internal import Foundation

extension AESGCM {
    /// Writes the ciphertext, which is as long as the plaintext, and the tag.
    static func encrypt(
        _ plaintext: UnsafeRawBufferPointer, using key: SecureBytes, nonce: RawSpan,
        authenticating authenticatedData: UnsafeRawBufferPointer, into ciphertext: UnsafeMutableRawBufferPointer,
        tag: UnsafeMutableRawBufferPointer
    ) throws(Failure) {
        do {
            let box = try AES.GCM.seal(
                plaintext, using: symmetric(key), nonce: Self.nonce(nonce), authenticating: authenticatedData)
            box.ciphertext.withUnsafeBytes { ciphertext.copyMemory(from: $0) }
            box.tag.withUnsafeBytes { tag.copyMemory(from: $0) }
        } catch {
            throw .library(LibraryError("AES-GCM", error))
        }
    }

    /// Writes the plaintext, unless this throws.
    static func decrypt(
        _ ciphertext: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer, using key: SecureBytes, nonce: RawSpan,
        authenticating authenticatedData: UnsafeRawBufferPointer, into plaintext: UnsafeMutableRawBufferPointer
    ) throws(Failure) {
        do {
            let box = try AES.GCM.SealedBox(nonce: Self.nonce(nonce), ciphertext: ciphertext, tag: tag)
            var opened = try AES.GCM.open(box, using: symmetric(key), authenticating: authenticatedData)
            defer { opened.resetBytes(in: opened.indices) }
            opened.withUnsafeBytes { plaintext.copyMemory(from: $0) }
        } catch CryptoKitError.authenticationFailure {
            throw .authenticationFailed
        } catch {
            throw .library(LibraryError("AES-GCM", error))
        }
    }

    private static func symmetric(_ key: SecureBytes) -> SymmetricKey { key.withUnsafeBytes { SymmetricKey(data: $0) } }

    /// CryptoKit takes any nonce of at least 12 bytes.
    private static func nonce(_ nonce: RawSpan) throws -> AES.GCM.Nonce {
        try nonce.withUnsafeBytes { try AES.GCM.Nonce(data: $0) }
    }
}
