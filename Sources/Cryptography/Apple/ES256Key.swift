internal import CryptoKit
internal import Foundation

/// Holds a key of CryptoKit that signs or verifies.
final class ES256Key: Sendable {
    private let privateKey: CryptoKit.P256.Signing.PrivateKey?
    private let publicKey: CryptoKit.P256.Signing.PublicKey

    init(_ key: P256.PrivateKey) throws(P256.Failure) {
        do {
            let privateKey = try key.bytes.withUnsafeBytes { bytes in
                try CryptoKit.P256.Signing.PrivateKey(
                    rawRepresentation: UnsafeRawBufferPointer(rebasing: bytes[P256.PublicKey.byteCount...]))
            }
            self.privateKey = privateKey
            publicKey = privateKey.publicKey
        } catch {
            throw .notAKey
        }
    }

    init(_ key: P256.PublicKey) throws(P256.Failure) {
        privateKey = nil
        do {
            publicKey = try CryptoKit.P256.Signing.PublicKey(x963Representation: key.bytes)
        } catch {
            throw .notAKey
        }
    }

    func signature(of message: UnsafeRawBufferPointer) throws(P256.Failure) -> [UInt8] {
        guard let privateKey else { throw .notAKey }
        do {
            return [UInt8](try privateKey.signature(for: message).rawRepresentation)
        } catch {
            throw .library(LibraryError("sign", error))
        }
    }

    /// - Parameter signature: 64 bytes.
    func isValid(_ signature: [UInt8], of message: UnsafeRawBufferPointer) -> Bool {
        guard let signature = try? CryptoKit.P256.Signing.ECDSASignature(rawRepresentation: signature) else {
            return false
        }
        return publicKey.isValidSignature(signature, for: message)
    }
}
