internal import Cryptography

/// The public half of a passkey that unlocks the keyring. The account's unlock key is sealed to it without the passkey.
///
/// It is only taken from the account's keyring, never from the server; see ``RecoveryKeys``.
struct PasskeyKeys: Sendable {
    /// The credential id.
    let id: [UInt8]
    let publicKey: P256.PublicKey
    let authenticationKey: SecureBytes

    /// The input of the passkey's pseudo-random function (`prf.eval.first` of WebAuthn Level 3 §10.1.4).
    static var input: [UInt8] { Array(SealingLabels.passkeyInput.utf8) }
    /// The number of bytes of its output.
    static let outputCount = 32

    /// Generates keys, and seals the private half under the output of a passkey.
    static func new(
        for id: [UInt8], output: SecureBytes, account: AccountID
    ) throws(SealedBox.Failure) -> (keys: PasskeyKeys, sealedPrivateKey: [UInt8]) {
        let (publicKey, authentication, secrets) = try KeyBox.newPair()
        let sealed = try SealedBox.seal(secrets, .first, at: place(account), with: key(id, output, account))
        return (PasskeyKeys(id: id, publicKey: publicKey, authenticationKey: authentication), sealed)
    }

    private static func place(_ account: AccountID) -> SealedBox.Place {
        SealedBox.Place(.passkey, account: account, item: .none, collection: "")
    }

    /// The key under the output, `HKDF(output, info: label ‖ account id ‖ credential id)`.
    private static func key(_ id: [UInt8], _ output: SecureBytes, _ account: AccountID) -> DataKey {
        let info = Array(SealingLabels.passkeyKey.utf8) + account.bytes + id
        guard let key = DataKey(HKDF.deriveKey(from: output, info: info)) else {
            preconditionFailure("HKDF returns the requested length")
        }
        return key
    }

    /// True for the same key pair.
    func isSame(as other: PasskeyKeys) -> Bool { id == other.id && publicKey == other.publicKey }

    /// Identifies these keys on a device that does not store them, 32 bytes.
    var digest: [UInt8] {
        var hash = SHA256.Incremental()
        hash.update(SecureBytes(copying: id + publicKey.bytes))
        hash.update(authenticationKey)
        return hash.finalize().bytes
    }

    // MARK: The box

    private static let version: UInt8 = 1

    /// Seals an unlock key for the passkey: version (1), then a ``KeyBox``.
    /// - Parameter counter: The counter of the keyring with which the box is sent.
    func box(
        of unlockKey: SecureBytes, counter: UInt64, account: AccountID
    ) throws(SealedBox.Failure) -> [UInt8] {
        try KeyBox.seal(
            unlockKey, to: publicKey, authenticationKey, label: SealingLabels.passkeyBox, account: account,
            counter: counter, head: [Self.version])
    }

    /// Opens a box with the output of a passkey.
    /// - Returns: The account's unlock key, and the keys with which the box was sealed.
    static func open(
        _ box: [UInt8], _ sealedPrivateKey: [UInt8], of id: [UInt8], output: SecureBytes, account: AccountID
    ) throws(Keyring.Failure) -> (unlockKey: SecureBytes, keys: PasskeyKeys) {
        guard box.first == version else { throw .malformed }
        let secrets: SecureBytes
        do throws(SealedBox.Failure) {
            secrets = try SealedBox.open(sealedPrivateKey, at: place(account), with: key(id, output, account)).content
        } catch {
            throw .notAuthentic
        }
        let (privateKey, authenticationKey) = try KeyBox.pair(secrets)
        let unlockKey = try KeyBox.open(
            box, headCount: 1, with: privateKey, authenticationKey, label: SealingLabels.passkeyBox, account: account
        ).content
        guard unlockKey.count == 32 else { throw .malformed }
        return (
            unlockKey, PasskeyKeys(id: id, publicKey: privateKey.publicKey, authenticationKey: authenticationKey)
        )
    }

    // MARK: Encoding

    /// The maximum number of passkeys of a keyring; the server has the same.
    static let limit = 20
    /// The longest credential id (WebAuthn Level 3 §6.5.1).
    private static let idLimit = 1_023

    /// Returns true for credential ids that one account can have. A hostile server may name any number, of any length.
    static func canBelong(_ ids: [Base64URLBytes]) -> Bool {
        ids.count <= limit && ids.allSatisfy { (1...idLimit).contains($0.bytes.count) }
    }

    /// number (1), then for each: length of credential id (2) ‖ credential id ‖ public key (65) ‖ authentication key
    /// (32)
    static func write(_ passkeys: [PasskeyKeys], to writer: inout SecretWriter) {
        writer.write([UInt8(truncatingIfNeeded: passkeys.count)])
        for passkey in passkeys {
            writer.write(UInt16(truncatingIfNeeded: passkey.id.count).bigEndianBytes)
            writer.write(passkey.id)
            writer.write(passkey.publicKey.bytes)
            writer.write(passkey.authenticationKey)
        }
    }

    static func read(_ reader: inout SecretReader) throws(Keyring.Failure) -> [PasskeyKeys] {
        guard let count = reader.byte(), (1...limit).contains(Int(count)) else { throw .malformed }
        var passkeys: [PasskeyKeys] = []
        for _ in 0..<count {
            guard let length = reader.number(2), (1...idLimit).contains(Int(length)),
                let id = reader.bytes(Int(length)),
                let point = reader.bytes(P256.PublicKey.byteCount), let publicKey = try? P256.PublicKey(point),
                let authenticationKey = reader.secret(32), !passkeys.contains(where: { $0.id == id })
            else { throw .malformed }
            passkeys.append(PasskeyKeys(id: id, publicKey: publicKey, authenticationKey: authenticationKey))
        }
        return passkeys
    }

    /// Adds the keys of a passkey, in place of earlier ones.
    static func add(_ keys: PasskeyKeys, to passkeys: inout [PasskeyKeys]) {
        passkeys.removeAll { $0.id == keys.id }
        passkeys.append(keys)
    }
}
