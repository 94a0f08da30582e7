internal import CFIDO2

/// The public key of a passkey, of one of the three algorithms that the server asks for.
public struct CredentialKey: Sendable, Hashable {
    /// A signature algorithm, by its number in COSE (RFC 9053, RFC 8812).
    public enum Algorithm: Int, Sendable, CaseIterable {
        /// ECDSA with P-256 and SHA-256.
        case es256 = -7
        /// EdDSA with Ed25519.
        case edDSA = -8
        /// RSASSA-PKCS1-v1_5 with SHA-256, and keys of 2,048 bits.
        case rs256 = -257

        /// The size of ``CredentialKey/bytes``.
        var byteCount: Int {
            switch self {
            case .es256: 64
            case .edDSA: 32
            case .rs256: 259
            }
        }
    }

    public let algorithm: Algorithm
    /// The key in the form of libfido2, which the server stores. ES256: x and y. EdDSA: the key. RS256: modulus and
    /// exponent.
    public let bytes: [UInt8]

    /// Reads a stored key.
    /// - Throws: ``WebAuthnFailure/malformedKey`` if it is no key of the algorithm.
    public init(algorithm: Algorithm, bytes: [UInt8]) throws(WebAuthnFailure) {
        guard bytes.count == algorithm.byteCount else { throw .malformedKey }
        self.algorithm = algorithm
        self.bytes = bytes
        _ = try PublicKeyObject.make(self)
    }

    /// Reads a COSE_Key (RFC 9052 §7), which has exactly the members of its algorithm.
    init(cose members: [CBORValue: CBORValue]) throws(WebAuthnFailure) {
        guard let number = members[.integer(3)]?.integer else { throw .malformedKey }
        guard let algorithm = Algorithm(rawValue: number) else { throw .unsupportedAlgorithm }
        func parameter(_ label: Int, _ count: Int) throws(WebAuthnFailure) -> [UInt8] {
            guard case .bytes(let bytes)? = members[.integer(label)], bytes.count == count else { throw .malformedKey }
            return bytes
        }
        func require(type: Int, curve: Int?, count: Int) throws(WebAuthnFailure) {
            guard members[.integer(1)]?.integer == type, members.count == count,
                curve == nil || members[.integer(-1)]?.integer == curve
            else { throw .malformedKey }
        }
        let bytes: [UInt8]
        switch algorithm {
        case .es256:
            try require(type: 2, curve: 1, count: 5)
            bytes = try parameter(-2, 32) + parameter(-3, 32)
        case .edDSA:
            try require(type: 1, curve: 6, count: 4)
            bytes = try parameter(-2, 32)
        case .rs256:
            try require(type: 3, curve: nil, count: 4)
            bytes = try parameter(-1, 256) + parameter(-2, 3)
        }
        try self.init(algorithm: algorithm, bytes: bytes)
    }
}

/// Owns a public key of libfido2.
struct PublicKeyObject: ~Copyable {
    private enum Key {
        // Owned: each is freed once, by `deinit`.
        case es256(OpaquePointer)
        case edDSA(OpaquePointer)
        case rs256(OpaquePointer)
    }

    private let key: Key

    private init(takingOwnershipOf key: Key) {
        self.key = key
    }

    /// - Throws: ``WebAuthnFailure/malformedKey`` if the bytes are no key, such as a point that is not on the curve.
    static func make(_ source: CredentialKey) throws(WebAuthnFailure) -> PublicKeyObject {
        let (bytes, count) = (source.bytes, source.bytes.count)
        switch source.algorithm {
        case .es256:
            guard let pointer = es256_pk_new() else { throw .malformedKey }
            let object = PublicKeyObject(takingOwnershipOf: .es256(pointer))
            guard es256_pk_from_ptr(pointer, bytes, count) == FIDO_OK, isKey(es256_pk_to_EVP_PKEY(pointer))
            else { throw .malformedKey }
            return object
        case .edDSA:
            guard let pointer = eddsa_pk_new() else { throw .malformedKey }
            let object = PublicKeyObject(takingOwnershipOf: .edDSA(pointer))
            guard eddsa_pk_from_ptr(pointer, bytes, count) == FIDO_OK, isKey(eddsa_pk_to_EVP_PKEY(pointer))
            else { throw .malformedKey }
            return object
        case .rs256:
            guard let pointer = rs256_pk_new() else { throw .malformedKey }
            let object = PublicKeyObject(takingOwnershipOf: .rs256(pointer))
            guard isRSA(bytes), rs256_pk_from_ptr(pointer, bytes, count) == FIDO_OK,
                isKey(rs256_pk_to_EVP_PKEY(pointer))
            else { throw .malformedKey }
            return object
        }
    }

    /// Checks that modulus and exponent are odd, the modulus has 2,048 bits, and the exponent is at least 3 (RFC 8017
    /// §3.1).
    private static func isRSA(_ bytes: [UInt8]) -> Bool {
        let exponent = bytes[256...].reduce(0) { $0 << 8 | Int($1) }
        return bytes[0] & 0x80 != 0 && bytes[255] & 1 == 1 && exponent & 1 == 1 && exponent >= 3
    }

    deinit {
        switch key {
        case .es256(let pointer):
            var pointer: OpaquePointer? = pointer
            es256_pk_free(&pointer)
        case .edDSA(let pointer):
            var pointer: OpaquePointer? = pointer
            eddsa_pk_free(&pointer)
        case .rs256(let pointer):
            var pointer: OpaquePointer? = pointer
            rs256_pk_free(&pointer)
        }
    }

    /// Returns true if libfido2 created an OpenSSL key, and frees it.
    private static func isKey(_ converted: OpaquePointer?) -> Bool {
        // OpenSSL keeps the errors of a thread in a queue, which later calls of the same thread would read.
        guard let converted else {
            ERR_clear_error()
            return false
        }
        EVP_PKEY_free(converted)
        return true
    }

    /// Verifies the first statement of an assertion.
    func verifies(_ assertion: borrowing AssertionObject) -> Bool {
        let result =
            switch key {
            case .es256(let pointer): fido_assert_verify(assertion.pointer, 0, COSE_ES256, UnsafeRawPointer(pointer))
            case .edDSA(let pointer): fido_assert_verify(assertion.pointer, 0, COSE_EDDSA, UnsafeRawPointer(pointer))
            case .rs256(let pointer): fido_assert_verify(assertion.pointer, 0, COSE_RS256, UnsafeRawPointer(pointer))
            }
        if result != FIDO_OK { ERR_clear_error() }
        return result == FIDO_OK
    }
}
