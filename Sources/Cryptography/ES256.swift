/// ECDSA on P-256 with SHA-256, in the form of JSON Web Signatures (RFC 7518 §3.4): r and s, each of 32 bytes.
public enum ES256 {
    /// The size of a signature, in bytes.
    public static let signatureByteCount = 64

    /// A key that signs any number of messages, from any thread.
    public struct SigningKey: Sendable {
        /// The key that verifies its signatures.
        public let publicKey: P256.PublicKey
        private let key: ES256Key

        /// Prepares a key.
        /// - Throws: ``P256/Failure/notAKey``.
        public init(_ key: P256.PrivateKey) throws(P256.Failure) {
            publicKey = key.publicKey
            self.key = try ES256Key(key)
        }

        /// Signs a message.
        public func signature(of message: some ByteSource) throws(P256.Failure) -> [UInt8] {
            try message.withContiguousBytes { message throws(P256.Failure) in try key.signature(of: message) }
        }

        /// Returns whether this key has signed a message.
        public func isValid(_ signature: [UInt8], of message: some ByteSource) -> Bool {
            signature.count == signatureByteCount
                && message.withContiguousBytes { key.isValid(signature, of: $0) }
        }
    }

    /// A public key that is prepared once and verifies any number of signatures, from any thread.
    public struct VerifyingKey: Sendable {
        /// The prepared key.
        public let publicKey: P256.PublicKey
        private let key: ES256Key

        /// Prepares a key.
        /// - Throws: ``P256/Failure/notAKey``.
        public init(_ publicKey: P256.PublicKey) throws(P256.Failure) {
            self.publicKey = publicKey
            key = try ES256Key(publicKey)
        }

        /// Returns whether the private half of this key has signed a message.
        public func isValid(_ signature: [UInt8], of message: some ByteSource) -> Bool {
            signature.count == signatureByteCount
                && message.withContiguousBytes { key.isValid(signature, of: $0) }
        }
    }

    /// Returns whether the private half of a public key has signed a message.
    public static func isValid(
        _ signature: [UInt8], of message: some ByteSource, by publicKey: P256.PublicKey
    ) -> Bool {
        guard let key = try? VerifyingKey(publicKey) else { return false }
        return key.isValid(signature, of: message)
    }
}
