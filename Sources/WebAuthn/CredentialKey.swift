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
