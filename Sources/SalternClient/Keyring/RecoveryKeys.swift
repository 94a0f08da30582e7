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
        let (publicKey, authentication, secrets) = try KeyBox.newPair()
        let sealed = try SealedBox.seal(secrets, .first, at: place(account), with: codeKey(code))
        return RecoveryKeys(publicKey: publicKey, authenticationKey: authentication, sealedPrivateKey: sealed)
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

    /// Seals the keyring for the code: version (1) ‖ length (2) ‖ sealed recovery keys, then a ``KeyBox``.
    func sealedKeyring(_ keyring: Keyring, account: AccountID) throws(SealedBox.Failure) -> [UInt8] {
        try KeyBox.seal(
            keyring.encoded(), to: publicKey, authenticationKey, label: SealingLabels.recoveryBox, account: account,
            counter: keyring.counter,
            head: [Self.version] + UInt16(sealedPrivateKey.count).bigEndianBytes + sealedPrivateKey)
    }

    /// Opens a recovery keyring with a code.
    static func open(
        _ sealed: [UInt8], with code: StretchedPassword, account: AccountID
    ) throws(Keyring.Failure) -> Keyring {
        let prefix = 3
        guard sealed.count > prefix, sealed[0] == version else { throw .malformed }
        let headCount = prefix + (Int(sealed[1]) << 8 | Int(sealed[2]))
        guard sealed.count > headCount else { throw .malformed }
        let secrets: SecureBytes
        do throws(SealedBox.Failure) {
            let box = Array(sealed[prefix..<headCount])
            secrets = try SealedBox.open(box, at: place(account), with: codeKey(code)).content
        } catch {
            throw .notAuthentic
        }
        let (privateKey, authenticationKey) = try KeyBox.pair(secrets)
        let (content, counter) = try KeyBox.open(
            sealed, headCount: headCount, with: privateKey, authenticationKey, label: SealingLabels.recoveryBox,
            account: account)
        let keyring = try Keyring(encoded: content)
        guard keyring.counter == counter else { throw .malformed }
        return keyring
    }
}

extension RecoveryReply {
    /// Returns the keyring that a printed code opens.
    /// - Parameter restoring: True when the user has approved a kept keyring of the server.
    /// - Throws: ``VaultError/keyringUnusable`` when none can be opened. ``VaultError/keyringReplaced`` when a kept one
    ///   can be opened and the user has not approved.
    func keyring(
        openedBy code: StretchedPassword, restoring: Bool
    ) throws(VaultError) -> (Keyring, sealed: [UInt8]) {
        if let sealed = keyring?.bytes,
            let opened = try? RecoveryKeys.open(sealed, with: code, account: accountId)
        {
            return (opened, sealed)
        }
        var latest: (Keyring, sealed: [UInt8])?
        for kept in keptKeyrings ?? [] {
            guard let opened = try? RecoveryKeys.open(kept.bytes, with: code, account: accountId),
                opened.counter > latest?.0.counter ?? 0
            else { continue }
            latest = (opened, kept.bytes)
        }
        guard let latest else { throw .keyringUnusable }
        guard restoring else { throw .keyringReplaced }
        return latest
    }
}
