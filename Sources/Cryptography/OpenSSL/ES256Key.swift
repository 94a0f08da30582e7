internal import COpenSSL

/// Owns an `EVP_PKEY *` that signs or verifies.
///
/// Safe on several threads: nothing changes the key after its initialisation, its reference counter is atomic, and each
/// call has its own context.
final class ES256Key: @unchecked Sendable {
    private let pointer: OpaquePointer

    init(_ key: P256.PrivateKey) throws(P256.Failure) {
        OpenSSLLibrary.setUp()
        let pointer = key.bytes.withUnsafeBytes { bytes in
            bytes.baseAddress.map { base in
                let base = base.assumingMemoryBound(to: UInt8.self)
                return saltern_EVP_PKEY_new_P256(base, base + P256.PublicKey.byteCount)
            } ?? nil
        }
        self.pointer = try Self.require(pointer)
    }

    init(_ key: P256.PublicKey) throws(P256.Failure) {
        pointer = try Self.require(saltern_EVP_PKEY_new_P256_point(P256Curve.parameters.pointer, key.bytes))
    }

    deinit { EVP_PKEY_free(pointer) }

    func signature(of message: UnsafeRawBufferPointer) throws(P256.Failure) -> [UInt8] {
        var signature = [UInt8](repeating: 0, count: ES256.signatureByteCount)
        let isSigned = SHA256.hash(message).withUnsafeBytes { digest in
            saltern_ECDSA_P256_sign(pointer, digest.baseAddress?.assumingMemoryBound(to: UInt8.self), &signature)
        }
        guard isSigned == 1 else { throw .library(LibraryError(draining: "sign")) }
        return signature
    }

    /// - Parameter signature: 64 bytes.
    func isValid(_ signature: [UInt8], of message: UnsafeRawBufferPointer) -> Bool {
        let isValid = SHA256.hash(message).withUnsafeBytes { digest in
            saltern_ECDSA_P256_verify(pointer, digest.baseAddress?.assumingMemoryBound(to: UInt8.self), signature)
        }
        // A wrong signature can leave an error in the queue that belongs to no later failure.
        if isValid != 1 { OpenSSLError.clearQueue() }
        return isValid == 1
    }

    private static func require(_ pointer: OpaquePointer?) throws(P256.Failure) -> OpaquePointer {
        guard let pointer else {
            OpenSSLError.clearQueue()
            throw .notAKey
        }
        return pointer
    }
}
