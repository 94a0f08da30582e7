internal import Cryptography

/// A change that came with a new keyring, of the password, the userid or the printed code, and of which no reply has been
/// seen: it may be done or not.
struct UnconfirmedChange: Codable, Sendable {
    /// What the server has when it is done.
    enum Outcome: Codable, Sendable {
        case credential(Credential)
        /// SHA-256 of the public key that belongs to the code.
        case recoveryCode(digest: Base64Bytes)
    }

    /// Who logs in with what.
    struct Credential: Codable, Sendable {
        let userid: String
        let iterations: Int
        /// The stretched password as an earlier version stored it, under the one of before.
        private let sealed: Base64Bytes?

        init(userid: String, iterations: Int) {
            self.userid = userid
            self.iterations = iterations
            sealed = nil
        }

        fileprivate func storedPassword(under current: KnownPassword) -> KnownPassword? {
            guard let sealed, let secret = try? DeviceSeal(under: current).open(sealed.bytes, .unconfirmedChange),
                secret.count == 64
            else { return nil }
            return StretchedPassword(secret).known
        }
    }

    /// The keyring's revision that it replaces. As long as the server has that one it is not done, and with another one it
    /// will never be.
    let replacing: Revision
    let outcome: Outcome
}

extension Vault {
    /// Seals the password that a change sets, under the one of before: locking the vault locks this, too.
    func sealedForChange(_ password: KnownPassword, under current: KnownPassword) throws -> SecureBytes {
        let sealed = try DeviceSeal(under: current).seal(password.encoded, .unconfirmedChange)
        return SecureBytes(copying: sealed)
    }

    /// Returns the password that a change sets; nil under another password than it was sealed under.
    func password(
        of credential: UnconfirmedChange.Credential, under current: KnownPassword
    ) throws(VaultError) -> KnownPassword? {
        if let stored = credential.storedPassword(under: current) { return stored }
        guard let sealed = try secret(.unconfirmedPassword)?.withUnsafeBytes({ [UInt8]($0) }),
            let secret = try? DeviceSeal(under: current).open(sealed, .unconfirmedChange)
        else { return nil }
        return KnownPassword(encoded: secret)
    }
}

extension UnconfirmedChange.Outcome {
    static func recoveryCode(_ keys: RecoveryKeys) -> Self {
        .recoveryCode(digest: Base64Bytes(SHA256.hash(keys.publicKey.bytes).bytes))
    }

    /// Whether a keyring that the known password opens says that it is done.
    func isDone(in keyring: Keyring) -> Bool {
        guard case .recoveryCode(let digest) = self, let recovery = keyring.recovery else { return false }
        return SHA256.hash(recovery.publicKey.bytes).bytes == digest.bytes
    }
}

extension DeviceSeal {
    /// For what only who has the password may open, as the keyring.
    fileprivate init(under password: KnownPassword) {
        key = HKDF.deriveKey(from: password.unlockKey, info: SealingLabels.unconfirmedChange.utf8)
    }
}
