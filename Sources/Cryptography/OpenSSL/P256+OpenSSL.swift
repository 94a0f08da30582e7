internal import COpenSSL

extension P256.PublicKey {
    /// Throws unless the bytes are a point of the curve.
    func check() throws(P256.Failure) { _ = try owner() }

    func owner() throws(P256.Failure) -> P256.Owner {
        try P256.Owner(accepted: saltern_EVP_PKEY_new_P256_point(P256Curve.parameters.pointer, bytes))
    }
}

extension P256.PrivateKey {
    /// Writes the stored form of a new key.
    static func generate(into buffer: UnsafeMutableRawBufferPointer) throws(P256.Failure) {
        OpenSSLLibrary.setUp()
        guard let pointer = saltern_EVP_EC_gen_P256() else {
            throw .library(LibraryError(draining: "make a P-256 key"))
        }
        let owner = P256.Owner(pointer)
        guard let base = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self),
            saltern_EVP_PKEY_get_P256_point(owner.pointer, base) == 1,
            saltern_EVP_PKEY_get_P256_number(owner.pointer, base + P256.PublicKey.byteCount) == 1
        else { throw .library(LibraryError(draining: "read a P-256 key")) }
    }

    /// Writes the point of a number at the start of the stored form.
    static func writePoint(
        of number: SecureBytes, into buffer: UnsafeMutableRawBufferPointer
    ) throws(P256.Failure) {
        let isWritten = number.withUnsafeBytes { number in
            saltern_P256_point_of_number(
                P256Curve.group.pointer, number.baseAddress?.assumingMemoryBound(to: UInt8.self),
                buffer.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
        guard isWritten == 1 else {
            OpenSSLError.clearQueue()
            throw .notAKey
        }
    }

    /// Writes the x of the common point.
    func agree(
        with other: P256.PublicKey, into secret: UnsafeMutableRawBufferPointer
    ) throws(P256.Failure) {
        let derivation = P256.Derivation(try owner())
        let peer = try other.owner()
        var length = secret.count
        // OpenSSL's check of the peer would take as long as the agreement. The creation of the peer has checked that
        // its point is on the curve, and every such point has the group's order (SP 800-56A section 5.6.2.3.4).
        guard EVP_PKEY_derive_init(derivation.context) == 1,
            EVP_PKEY_derive_set_peer_ex(derivation.context, peer.pointer, 0) == 1,
            EVP_PKEY_derive(
                derivation.context, secret.baseAddress?.assumingMemoryBound(to: UInt8.self), &length) == 1,
            length == secret.count
        else { throw .library(LibraryError(draining: "agree on a key")) }
    }

    func owner() throws(P256.Failure) -> P256.Owner {
        OpenSSLLibrary.setUp()
        let key = bytes.withUnsafeBytes { bytes in
            bytes.baseAddress.map { base in
                let base = base.assumingMemoryBound(to: UInt8.self)
                return saltern_EVP_PKEY_new_P256(base, base + P256.PublicKey.byteCount)
            } ?? nil
        }
        return try P256.Owner(accepted: key)
    }
}

/// The curve's parameters, which are created once for the life of the process. OpenSSL 3 otherwise computes them for
/// each key, which takes longer than multiplying a point.
///
/// Both objects are never freed.
private enum P256Curve {
    /// A key without a point.
    static let parameters: P256.Owner = {
        OpenSSLLibrary.setUp()
        return P256.Owner(requireAllocated(saltern_EVP_PKEY_new_P256_parameters(), "set up P-256"))
    }()
    static let group = Group()

    /// Owns an `EC_GROUP *`.
    ///
    /// `@unchecked Sendable` is safe: OpenSSL only reads the group.
    final class Group: @unchecked Sendable {
        let pointer: OpaquePointer

        init() {
            OpenSSLLibrary.setUp()
            pointer = requireAllocated(saltern_EC_GROUP_new_P256(), "set up P-256")
        }

        deinit { EC_GROUP_free(pointer) }
    }
}

extension P256 {
    /// Owns an `EVP_PKEY *`. OpenSSL zeroes it when it frees it.
    ///
    /// `@unchecked Sendable` is safe: nothing changes the key after its initialisation, its reference counter is
    /// atomic, and each operation has its own context.
    final class Owner: @unchecked Sendable {
        let pointer: OpaquePointer

        /// Takes ownership.
        fileprivate init(_ pointer: OpaquePointer) { self.pointer = pointer }

        /// Takes ownership of a key that OpenSSL may have rejected.
        /// - Throws: ``P256/Failure/notAKey`` for nil.
        fileprivate convenience init(accepted pointer: OpaquePointer?) throws(P256.Failure) {
            guard let pointer else {
                OpenSSLError.clearQueue()
                throw .notAKey
            }
            self.init(pointer)
        }

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
