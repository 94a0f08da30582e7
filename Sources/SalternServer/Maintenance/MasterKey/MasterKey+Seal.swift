internal import Cryptography
internal import Postgres

/// The context of a sealed secret. It opens in no other, so that writers to the database cannot move it.
struct SealedPlace: Sendable {
    let authenticatedData: [UInt8]

    /// The context of an account's secret of one-time passwords.
    static func oneTimePasswords(of account: AccountID) -> SealedPlace {
        SealedPlace(authenticatedData: Array("saltern/one-time-passwords/".utf8) + account.uuid.bytes)
    }
}

extension MasterKey {
    /// The first byte of sealed values: the format of the rest.
    private static let form: UInt8 = 1
    private static let headerByteCount = 1 + MasterKeyID.byteCount

    /// Seals a secret for one context with the active key.
    ///
    /// - Returns: The format, the key's id, and `nonce || ciphertext || tag` of AES-256-GCM; 33 bytes more than
    ///   `secret`.
    func seal(_ secret: some ByteSource, for place: SealedPlace) throws(AESGCM.Failure) -> [UInt8] {
        let header = [Self.form] + active.id.bytes
        return header
            + (try AESGCM.seal(
                secret, using: Self.sealingKey(of: active), authenticating: place.authenticatedData + header))
    }

    /// Opens the result of ``seal(_:for:)`` for the same context with any of the keys.
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

    /// Returns the id of the key that sealed a value.
    static func id(ofKeyThatSealed sealed: [UInt8]) throws(MasterKeyError) -> MasterKeyID {
        guard sealed.first == form, let id = MasterKeyID(sealed.dropFirst().prefix(MasterKeyID.byteCount)) else {
            throw .notAuthentic
        }
        return id
    }

    /// The first bytes of values sealed with the active key.
    var activeHeader: [UInt8] { [Self.form] + active.id.bytes }
}
