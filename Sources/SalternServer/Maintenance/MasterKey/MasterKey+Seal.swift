internal import Cryptography
internal import Postgres

/// Where a sealed secret belongs: it opens nowhere else, so that nobody who writes to the database can move it.
struct SealedPlace: Sendable {
    let authenticatedData: [UInt8]

    /// The secret of an account's one-time passwords.
    static func oneTimePasswords(of account: AccountID) -> SealedPlace {
        SealedPlace(authenticatedData: Array("saltern/one-time-passwords/".utf8) + account.uuid.bytes)
    }
}

extension MasterKey {
    /// The first byte of everything that is sealed: which form the rest has.
    private static let form: UInt8 = 1
    private static let headerByteCount = 1 + MasterKeyID.byteCount

    /// Seals a secret for one place with the active key.
    /// - Returns: the form, the key's name, and `nonce || ciphertext || tag` of AES-256-GCM; 33 bytes more than `secret`.
    func seal(_ secret: some ByteSource, for place: SealedPlace) throws(AESGCM.Failure) -> [UInt8] {
        let header = [Self.form] + active.id.bytes
        return header
            + (try AESGCM.seal(
                secret, using: Self.sealingKey(of: active), authenticating: place.authenticatedData + header))
    }

    /// Opens what ``seal(_:for:)`` returned for the same place, with whichever of the keys.
    func open(_ sealed: [UInt8], for place: SealedPlace) throws(MasterKeyError) -> SecureBytes {
        let id = try Self.id(ofKeyThatSealed: sealed)
        guard let key = keys.first(where: { $0.id == id }) else { throw .unknownKey(id) }
        let header = sealed[..<Self.headerByteCount]
        do throws(AESGCM.Failure) {
            return try AESGCM.open(
                sealed[Self.headerByteCount...], using: Self.sealingKey(of: key),
                authenticating: place.authenticatedData + header)
        } catch {
            throw .notAuthentic
        }
    }

    /// The name of the key that something was sealed with.
    static func id(ofKeyThatSealed sealed: [UInt8]) throws(MasterKeyError) -> MasterKeyID {
        guard sealed.first == form, let id = MasterKeyID(sealed.dropFirst().prefix(MasterKeyID.byteCount)) else {
            throw .notAuthentic
        }
        return id
    }

    /// How everything begins that the active key has sealed.
    var activeHeader: [UInt8] { [Self.form] + active.id.bytes }
}
