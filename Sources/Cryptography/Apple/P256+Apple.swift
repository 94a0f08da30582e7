internal import CryptoKit
internal import Foundation

extension P256.PublicKey {
    /// Throws unless the bytes are a point of the curve.
    func check() throws(P256.Failure) { _ = try key() }

    fileprivate func key() throws(P256.Failure) -> CryptoKit.P256.KeyAgreement.PublicKey {
        do { return try CryptoKit.P256.KeyAgreement.PublicKey(x963Representation: bytes) } catch { throw .notAKey }
    }
}

extension P256.PrivateKey {
    /// Writes the stored form of a new key.
    static func generate(into buffer: UnsafeMutableRawBufferPointer) throws(P256.Failure) {
        var form = CryptoKit.P256.KeyAgreement.PrivateKey().x963Representation
        defer { form.resetBytes(in: form.indices) }
        guard form.count == buffer.count else { throw .library(LibraryError("read a P-256 key", form.count)) }
        form.withUnsafeBytes { buffer.copyMemory(from: $0) }
    }

    /// Writes the point of a number at the start of the stored form.
    static func writePoint(
        of number: SecureBytes, into buffer: UnsafeMutableRawBufferPointer
    ) throws(P256.Failure) {
        do {
            let key = try number.withUnsafeBytes { try CryptoKit.P256.KeyAgreement.PrivateKey(rawRepresentation: $0) }
            key.publicKey.x963Representation.withUnsafeBytes { buffer.copyMemory(from: $0) }
        } catch {
            throw .notAKey
        }
    }

    /// Writes the x of the common point.
    func agree(
        with other: P256.PublicKey, into secret: UnsafeMutableRawBufferPointer
    ) throws(P256.Failure) {
        let key = try key()
        let peer = try other.key()
        do {
            let shared = try key.sharedSecretFromKeyAgreement(with: peer)
            shared.withUnsafeBytes { secret.copyMemory(from: $0) }
        } catch {
            throw .library(LibraryError("agree on a key", error))
        }
    }

    /// Makes a key of the number alone.
    private func key() throws(P256.Failure) -> CryptoKit.P256.KeyAgreement.PrivateKey {
        do {
            return try bytes.withUnsafeBytes { bytes in
                try CryptoKit.P256.KeyAgreement.PrivateKey(
                    rawRepresentation: UnsafeRawBufferPointer(rebasing: bytes[P256.PublicKey.byteCount...]))
            }
        } catch {
            throw .notAKey
        }
    }
}
