internal import Cryptography

/// A change with a new keyring whose reply has not arrived, so that its outcome is uncertain. It changes the password,
/// the userid or the printed code.
struct UnconfirmedChange: Codable, Sendable {
    /// The state of the server after the change.
    enum Outcome: Codable, Sendable {
        case credential(Credential)
        /// SHA-256 of the code's public key.
        case recoveryCode(digest: Base64Bytes)
    }

    /// The data of a log-in.
    struct Credential: Codable, Sendable {
        let userid: String
        let iterations: Int
        /// The derived password in the format of an earlier version, sealed with the previous one.
        private let sealed: Base64Bytes?

        init(userid: String, iterations: Int) {
            self.userid = userid
            self.iterations = iterations
            sealed = nil
        }

        func storedPassword(under current: KnownPassword) -> KnownPassword? {
            guard let sealed, let secret = try? DeviceSeal(under: current).open(sealed.bytes, .unconfirmedChange),
                secret.count == 64
            else { return nil }
            return StretchedPassword(secret).known
        }
    }

    /// The revision of the keyring that the change replaces. While the server has that revision, the change has not
    /// been applied. With another revision it will never be.
    let replacing: Revision
    let outcome: Outcome
}

extension UnconfirmedChange.Outcome {
    static func recoveryCode(_ keys: RecoveryKeys) -> Self {
        .recoveryCode(digest: Base64Bytes(SHA256.hash(keys.publicKey.bytes).bytes))
    }

    /// Returns true when the keyring, opened by the known password, contains the change.
    func isDone(in keyring: Keyring) -> Bool {
        guard case .recoveryCode(let digest) = self, let recovery = keyring.recovery else { return false }
        return SHA256.hash(recovery.publicKey.bytes).bytes == digest.bytes
    }
}

extension DeviceSeal {
    /// Creates a seal for content that only the password may open, as the keyring.
    init(under password: KnownPassword) {
        key = HKDF.deriveKey(from: password.unlockKey, info: SealingLabels.unconfirmedChange.utf8)
    }

    /// Seals the password that a change sets, with the previous one. Locking the vault locks it, too.
    static func sealed(_ password: KnownPassword, under current: KnownPassword) throws -> SecureBytes {
        SecureBytes(copying: try DeviceSeal(under: current).seal(password.encoded, .unconfirmedChange))
    }
}
