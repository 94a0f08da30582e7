internal import COpenSSL

/// Diffie-Hellman on NIST P-256 (SP 800-56A section 5.7.1.2), with keys in the forms of X9.63.
public enum P256 {
    /// Why there is no key or no secret.
    public enum Failure: Error, Hashable, Sendable {
        /// The bytes are no key: another length, or no point of the curve.
        case notAKey
        /// OpenSSL failed.
        case openSSL(OpenSSLError)
    }

    /// A point of the curve: what the other side may know.
    public struct PublicKey: Sendable, Hashable {
        /// How many bytes the uncompressed form has.
        public static let byteCount = 65
        /// The uncompressed form: 4, x, y.
        public let bytes: [UInt8]

        /// Reads the uncompressed form.
        /// - Throws: ``Failure/notAKey`` also for a point that is not on the curve.
        public init(_ bytes: [UInt8]) throws(Failure) {
            self.bytes = bytes
            _ = try owner()
        }

        fileprivate func owner() throws(Failure) -> Owner {
            guard bytes.count == Self.byteCount, bytes.first == 4,
                let key = saltern_EVP_PKEY_new_P256(bytes, nil)
            else {
                OpenSSLError.clearQueue()
                throw .notAKey
            }
            return Owner(takingOwnershipOf: key)
        }
    }

    /// A secret number with its point.
    public struct PrivateKey: Sendable {
        /// How many bytes the stored form has.
        public static let byteCount = 97
        /// The uncompressed point, then the number: 4, x, y, k.
        public let bytes: SecureBytes
        /// The public half.
        public let publicKey: PublicKey

        /// Draws a new key.
        public static func generate() throws(Failure) -> PrivateKey {
            guard let pointer = saltern_EVP_EC_gen_P256() else {
                throw .openSSL(OpenSSLError(draining: "make a P-256 key"))
            }
            let owner = Owner(takingOwnershipOf: pointer)
            let bytes = try SecureBytes(count: byteCount) { buffer throws(Failure) in
                guard let base = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self),
                    saltern_EVP_PKEY_get_P256_point(owner.pointer, base) == 1,
                    saltern_EVP_PKEY_get_P256_number(owner.pointer, base + PublicKey.byteCount) == 1
                else { throw .openSSL(OpenSSLError(draining: "read a P-256 key")) }
            }
            return try PrivateKey(bytes)
        }

        /// Reads the stored form.
        public init(_ bytes: SecureBytes) throws(Failure) {
            guard bytes.count == Self.byteCount else { throw .notAKey }
            self.bytes = bytes
            publicKey = try PublicKey(bytes.withUnsafeBytes { [UInt8]($0[..<PublicKey.byteCount]) })
            let ephemeral = try Self.pair(bytes)
            guard EVP_PKEY_pairwise_check(ephemeral.context) == 1 else {
                OpenSSLError.clearQueue()
                throw .notAKey
            }
        }

        private static func pair(_ bytes: SecureBytes) throws(Failure) -> Derivation {
            let key = bytes.withUnsafeBytes { bytes in
                bytes.baseAddress.map { base in
                    let base = base.assumingMemoryBound(to: UInt8.self)
                    return saltern_EVP_PKEY_new_P256(base, base + PublicKey.byteCount)
                } ?? nil
            }
            guard let key else {
                OpenSSLError.clearQueue()
                throw .notAKey
            }
            return Derivation(Owner(takingOwnershipOf: key))
        }

        /// The secret that both sides share: the 32 bytes of the common point's x. Derive keys from it with ``HKDF``.
        public func sharedSecret(with other: PublicKey) throws(Failure) -> SecureBytes {
            let derivation = try Self.pair(bytes)
            let peer = try other.owner()
            guard EVP_PKEY_derive_init(derivation.context) == 1,
                EVP_PKEY_derive_set_peer(derivation.context, peer.pointer) == 1
            else { throw .openSSL(OpenSSLError(draining: "agree on a key")) }
            return try SecureBytes(count: 32) { secret throws(Failure) in
                var length = secret.count
                guard
                    EVP_PKEY_derive(
                        derivation.context, secret.baseAddress?.assumingMemoryBound(to: UInt8.self), &length) == 1,
                    length == secret.count
                else { throw .openSSL(OpenSSLError(draining: "agree on a key")) }
            }
        }
    }
}

extension P256 {
    /// Owns an `EVP_PKEY *`, which OpenSSL wipes when it frees it.
    fileprivate final class Owner {
        let pointer: OpaquePointer

        init(takingOwnershipOf pointer: OpaquePointer) { self.pointer = pointer }

        deinit { EVP_PKEY_free(pointer) }
    }

    /// Owns an `EVP_PKEY_CTX *` of a key, which it keeps alive.
    fileprivate final class Derivation {
        let context: OpaquePointer
        private let key: Owner

        init(_ key: Owner) {
            self.key = key
            context = requireAllocated(EVP_PKEY_CTX_new_from_pkey(nil, key.pointer, nil), "allocate a key agreement")
        }

        deinit { EVP_PKEY_CTX_free(context) }
    }
}

extension P256.PrivateKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "P256.PrivateKey(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
