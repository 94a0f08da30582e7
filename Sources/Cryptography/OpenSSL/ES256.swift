internal import COpenSSL

/// ECDSA on P-256 with SHA-256, in the form of JSON Web Signatures (RFC 7518 §3.4): r and s, each of 32 bytes.
///
/// Only the server signs, so there is no implementation for Apple's platforms.
public enum ES256 {
    /// The size of a signature, in bytes.
    public static let signatureByteCount = 64

    /// A key that signs any number of messages, from any thread.
    public struct SigningKey: Sendable {
        /// The key that verifies its signatures.
        public let publicKey: P256.PublicKey
        private let owner: Owner

        /// Prepares a key.
        /// - Throws: ``P256/Failure/notAKey``.
        public init(_ key: P256.PrivateKey) throws(P256.Failure) {
            publicKey = key.publicKey
            owner = try Owner(key)
        }

        /// Signs a message.
        public func signature(of message: some ByteSource) throws(P256.Failure) -> [UInt8] {
            let digest = SHA256.hash(message)
            var signature = [UInt8](repeating: 0, count: signatureByteCount)
            let isSigned = digest.withUnsafeBytes { digest in
                withExtendedLifetime(owner) {
                    saltern_ECDSA_P256_sign(
                        owner.pointer, digest.baseAddress?.assumingMemoryBound(to: UInt8.self), &signature)
                }
            }
            guard isSigned == 1 else { throw .library(LibraryError(draining: "sign")) }
            return signature
        }

        /// Returns whether this key has signed a message.
        public func isValid(_ signature: [UInt8], of message: some ByteSource) -> Bool {
            owner.isValid(signature, of: message)
        }
    }

    /// Returns whether the private half of a public key has signed a message.
    public static func isValid(
        _ signature: [UInt8], of message: some ByteSource, by publicKey: P256.PublicKey
    ) -> Bool {
        guard let owner = try? Owner(publicKey) else { return false }
        return owner.isValid(signature, of: message)
    }

    /// Owns an `EVP_PKEY *`.
    ///
    /// Safe on several threads: nothing changes the key after its initialisation, its reference counter is atomic, and
    /// each call has its own context.
    private final class Owner: @unchecked Sendable {
        let pointer: OpaquePointer

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
            OpenSSLLibrary.setUp()
            pointer = try Self.require(saltern_EVP_PKEY_new_P256(key.bytes, nil))
        }

        deinit { EVP_PKEY_free(pointer) }

        func isValid(_ signature: [UInt8], of message: some ByteSource) -> Bool {
            guard signature.count == signatureByteCount else { return false }
            let digest = SHA256.hash(message)
            let isValid = digest.withUnsafeBytes { digest in
                saltern_ECDSA_P256_verify(
                    pointer, digest.baseAddress?.assumingMemoryBound(to: UInt8.self), signature)
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
}
