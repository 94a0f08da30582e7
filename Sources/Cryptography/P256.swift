/// Diffie-Hellman on NIST P-256 (SP 800-56A section 5.7.1.2), with keys in the forms of X9.63. ``ES256``
/// signs with them.
public enum P256 {
    /// The reason for which there is no key or no secret.
    public enum Failure: Error, Hashable, Sendable {
        /// The bytes are no key: wrong length, or no point of the curve.
        case notAKey
        /// The platform's library failed.
        case library(LibraryError)
    }

    /// A point of the curve, which may be public.
    public struct PublicKey: Sendable, Hashable {
        /// The number of bytes of the uncompressed form.
        public static let byteCount = 65
        /// The uncompressed form: 4, x, y.
        public let bytes: [UInt8]

        /// Reads the uncompressed form.
        /// - Throws: ``Failure/notAKey`` also for a point that is not on the curve.
        public init(_ bytes: [UInt8]) throws(Failure) {
            guard bytes.count == Self.byteCount, bytes.first == 4 else { throw .notAKey }
            self.bytes = bytes
            try check()
        }

        /// Takes the point at the start of a private key's stored form, which is one.
        fileprivate init(ofKey bytes: SecureBytes) {
            self.bytes = bytes.withUnsafeBytes { [UInt8]($0[..<Self.byteCount]) }
        }
    }

    /// A secret number with its point.
    public struct PrivateKey: Sendable {
        /// The number of bytes of the stored form.
        public static let byteCount = 97
        /// The uncompressed point, then the number: 4, x, y, k.
        public let bytes: SecureBytes
        /// The public half.
        public let publicKey: PublicKey

        /// Draws a new key.
        public static func generate() throws(Failure) -> PrivateKey {
            let bytes = try SecureBytes(count: byteCount) { buffer throws(Failure) in try generate(into: buffer) }
            return PrivateKey(valid: bytes)
        }

        /// Computes the point of a number of 32 bytes, big-endian.
        /// - Throws: ``Failure/notAKey`` for zero and for numbers from the order of the curve.
        public init(number: SecureBytes) throws(Failure) {
            guard number.count == 32 else { throw .notAKey }
            self.init(
                valid: try SecureBytes(count: Self.byteCount) { buffer throws(Failure) in
                    try Self.writePoint(of: number, into: buffer)
                    number.withUnsafeBytes {
                        UnsafeMutableRawBufferPointer(rebasing: buffer[PublicKey.byteCount...]).copyMemory(from: $0)
                    }
                })
        }

        /// Reads the stored form.
        /// - Throws: ``Failure/notAKey`` also for a number with another point.
        public init(_ bytes: SecureBytes) throws(Failure) {
            guard bytes.count == Self.byteCount else { throw .notAKey }
            let number = SecureBytes(count: 32) { number in
                bytes.withUnsafeBytes {
                    number.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[PublicKey.byteCount...]))
                }
            }
            try self.init(number: number)
            guard publicKey == PublicKey(ofKey: bytes) else { throw .notAKey }
        }

        private init(valid bytes: SecureBytes) {
            self.bytes = bytes
            publicKey = PublicKey(ofKey: bytes)
        }

        /// Returns the secret that both sides share: the 32 bytes of the common point's x. Derive keys from it with
        /// ``HKDF``.
        public func sharedSecret(with other: PublicKey) throws(Failure) -> SecureBytes {
            try SecureBytes(count: 32) { secret throws(Failure) in try agree(with: other, into: secret) }
        }
    }
}

extension P256.PrivateKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "P256.PrivateKey(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
