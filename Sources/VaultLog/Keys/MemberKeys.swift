public import Cryptography

/// The public keys of a member, made for one vault only.
public struct MemberPublicKeys: Hashable, Sendable {
    /// Verifies entries and edits.
    public let signing: P256.PublicKey
    /// Receives the keys of generations.
    public let agreement: P256.PublicKey

    static let byteCount = 2 * P256.PublicKey.byteCount

    /// Creates a pair of keys.
    /// - Returns: nil when both are one key.
    public init?(signing: P256.PublicKey, agreement: P256.PublicKey) {
        guard signing != agreement else { return nil }
        self.signing = signing
        self.agreement = agreement
    }

    /// Signing key (65) ‖ agreement key (65).
    var bytes: [UInt8] { signing.bytes + agreement.bytes }

    init?(_ reader: inout ByteReader) {
        guard let signing = reader.publicKey(), let agreement = reader.publicKey() else { return nil }
        self.init(signing: signing, agreement: agreement)
    }
}

/// The private keys of a member, made for one vault only, so that keys do not link memberships.
public struct MemberPrivateKeys: Sendable {
    /// Signs entries and edits.
    public let signing: P256.PrivateKey
    /// Opens the keys of generations.
    public let agreement: P256.PrivateKey
    /// The public halves.
    public let publicKeys: MemberPublicKeys

    /// Creates a pair of keys.
    /// - Throws: ``P256/Failure/notAKey`` when both are one key.
    public init(signing: P256.PrivateKey, agreement: P256.PrivateKey) throws(P256.Failure) {
        guard let publicKeys = MemberPublicKeys(signing: signing.publicKey, agreement: agreement.publicKey) else {
            throw .notAKey
        }
        self.signing = signing
        self.agreement = agreement
        self.publicKeys = publicKeys
    }

    /// Draws keys.
    public static func generate() throws(P256.Failure) -> MemberPrivateKeys {
        try MemberPrivateKeys(signing: .generate(), agreement: .generate())
    }
}

/// A member that signs.
public struct MemberSigner: Sendable {
    /// The vault.
    public let vault: VaultID
    /// The member.
    public let member: MemberID
    let key: ES256.SigningKey

    /// Prepares the signing key of a member.
    public init(_ member: MemberID, of vault: VaultID, _ keys: MemberPrivateKeys) throws(P256.Failure) {
        self.vault = vault
        self.member = member
        key = try ES256.SigningKey(keys.signing)
    }
}
