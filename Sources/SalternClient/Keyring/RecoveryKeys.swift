internal import Cryptography

/// The keys that a printed code opens, and those that seal data keys to it without the code.
///
/// The public key and the authentication key are only taken from the account's keyring, never from the server. A
/// hostile server could otherwise substitute its own public key and receive the data keys.
struct RecoveryKeys: Sendable {
    let publicKey: P256.PublicKey
    let authenticationKey: SecureBytes
    /// Private key and authentication key, sealed under the code.
    let sealedPrivateKey: [UInt8]

    /// Generates keys and seals them with a code.
    static func new(for code: StretchedPassword, account: AccountID) throws(SealedBox.Failure) -> RecoveryKeys {
        guard let privateKey = try? P256.PrivateKey.generate() else { throw .malformed }
        let authenticationKey = SecureRandom.secureBytes(32)
        var writer = SecretWriter()
        writer.write(privateKey.bytes)
        writer.write(authenticationKey)
        let sealed = try SealedBox.seal(writer.bytes, .first, at: place(account), with: codeKey(code))
        return RecoveryKeys(
            publicKey: privateKey.publicKey, authenticationKey: authenticationKey, sealedPrivateKey: sealed)
    }

    private static func place(_ account: AccountID) -> SealedBox.Place {
        SealedBox.Place(.recovery, account: account, item: .none, collection: "")
    }

    private static func codeKey(_ code: StretchedPassword) -> DataKey {
        let bytes = HKDF.deriveKey(from: code.unlockKey, info: SealingLabels.recoveryKey.utf8)
        guard let key = DataKey(bytes) else { preconditionFailure("HKDF returns the requested length") }
        return key
    }

    // MARK: The recovery keyring

    private static let version: UInt8 = 1

    /// Seals the keyring for the code:
    ///
    ///     version (1) ‖ length (2) ‖ sealed recovery keys ‖ ephemeral public key (65) ‖ counter (8)
    ///     ‖ nonce (12) ‖ ciphertext ‖ tag (16)
    ///
    /// The key is `HKDF(ECDH, salt: authentication key, info: label ‖ account id ‖ both public keys ‖ counter)`.
    func sealedKeyring(_ keyring: Keyring, account: AccountID) throws(SealedBox.Failure) -> [UInt8] {
        let ephemeral: P256.PrivateKey
        let secret: SecureBytes
        do throws(P256.Failure) {
            ephemeral = try .generate()
            secret = try ephemeral.sharedSecret(with: publicKey)
        } catch {
            throw .malformed
        }
        let head =
            [Self.version] + UInt16(sealedPrivateKey.count).bigEndianBytes + sealedPrivateKey
            + ephemeral.publicKey.bytes + keyring.counter.bigEndianBytes
        let key = Self.boxKey(
            secret, authenticationKey, account, ephemeral.publicKey, publicKey, counter: keyring.counter)
        do throws(AESGCM.Failure) {
            return head + (try AESGCM.seal(keyring.encoded(), using: key, authenticating: head))
        } catch {
            throw .tooLong
        }
    }

    /// Opens a recovery keyring with a code.
    static func open(
        _ sealed: [UInt8], with code: StretchedPassword, account: AccountID
    ) throws(Keyring.Failure) -> Keyring {
        let prefix = 3
        guard sealed.count > prefix, sealed[0] == version else { throw .malformed }
        let boxCount = Int(sealed[1]) << 8 | Int(sealed[2])
        let keyStart = prefix + boxCount
        let headCount = keyStart + P256.PublicKey.byteCount + 8
        guard sealed.count > headCount else { throw .malformed }
        let privateKey: P256.PrivateKey
        let authenticationKey: SecureBytes
        do {
            let opened = try SealedBox.open(Array(sealed[prefix..<keyStart]), at: place(account), with: codeKey(code))
            var reader = SecretReader(opened.content)
            guard let key = reader.secret(P256.PrivateKey.byteCount), let authentication = reader.secret(32),
                reader.isAtEnd
            else { throw Keyring.Failure.malformed }
            privateKey = try P256.PrivateKey(key)
            authenticationKey = authentication
        } catch let error as Keyring.Failure {
            throw error
        } catch {
            throw .notAuthentic
        }
        let counter = sealed[headCount - 8..<headCount].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        do {
            let ephemeral = try P256.PublicKey(Array(sealed[keyStart..<keyStart + P256.PublicKey.byteCount]))
            let key = boxKey(
                try privateKey.sharedSecret(with: ephemeral), authenticationKey, account, ephemeral,
                privateKey.publicKey, counter: counter)
            let keyring = try Keyring(
                encoded: AESGCM.open(sealed[headCount...], using: key, authenticating: sealed[..<headCount]))
            guard keyring.counter == counter else { throw Keyring.Failure.malformed }
            return keyring
        } catch let error as Keyring.Failure {
            throw error
        } catch {
            throw .notAuthentic
        }
    }

    private static func boxKey(
        _ secret: SecureBytes, _ authenticationKey: SecureBytes, _ account: AccountID, _ ephemeral: P256.PublicKey,
        _ recovery: P256.PublicKey, counter: UInt64
    ) -> SecureBytes {
        let info =
            Array(SealingLabels.recoveryBox.utf8) + account.bytes + ephemeral.bytes + recovery.bytes
            + counter.bigEndianBytes
        return HKDF.deriveKey(from: secret, salt: authenticationKey, info: info)
    }
}
