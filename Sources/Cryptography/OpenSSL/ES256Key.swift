internal import COpenSSL

/// A key that signs or verifies.
final class ES256Key: Sendable {
    private let key: P256.Owner

    init(_ key: P256.PrivateKey) throws(P256.Failure) { self.key = try key.owner() }

    init(_ key: P256.PublicKey) throws(P256.Failure) { self.key = try key.owner() }

    func signature(of message: UnsafeRawBufferPointer) throws(P256.Failure) -> [UInt8] {
        var signature = [UInt8](repeating: 0, count: ES256.signatureByteCount)
        let isSigned = SHA256.hash(message).withUnsafeBytes { digest in
            saltern_ECDSA_P256_sign(key.pointer, digest.baseAddress?.assumingMemoryBound(to: UInt8.self), &signature)
        }
        guard isSigned == 1 else { throw .library(LibraryError(draining: "sign")) }
        return signature
    }

    /// - Parameter signature: 64 bytes.
    func isValid(_ signature: [UInt8], of message: UnsafeRawBufferPointer) -> Bool {
        let isValid = SHA256.hash(message).withUnsafeBytes { digest in
            saltern_ECDSA_P256_verify(key.pointer, digest.baseAddress?.assumingMemoryBound(to: UInt8.self), signature)
        }
        // A wrong signature can leave an error in the queue that belongs to no later failure.
        if isValid != 1 { OpenSSLError.clearQueue() }
        return isValid == 1
    }
}
