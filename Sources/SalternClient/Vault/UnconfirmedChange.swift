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
        /// What the password is stretched to, under the one of before: whoever locks the vault locks this, too.
        private let sealed: Base64Bytes

        init(
            userid: String, iterations: Int, _ password: StretchedPassword, under current: StretchedPassword
        ) throws {
            self.userid = userid
            self.iterations = iterations
            var secret = SecretWriter()
            secret.write(password.passwordKey.bytes)
            secret.write(password.unlockKey)
            sealed = Base64Bytes(try DeviceSeal(under: current).seal(secret.bytes, .unconfirmedChange))
        }

        /// - Returns: nil for who has another password than it was sealed under.
        func password(under current: StretchedPassword) -> StretchedPassword? {
            let secret = try? DeviceSeal(under: current).open(sealed.bytes, .unconfirmedChange)
            return secret.flatMap { $0.count == 64 ? StretchedPassword($0) : nil }
        }
    }

    /// The keyring's revision that it replaces. As long as the server has that one it is not done, and with another one it
    /// will never be.
    let replacing: Revision
    let outcome: Outcome
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
    fileprivate init(under password: StretchedPassword) {
        key = HKDF.deriveKey(from: password.unlockKey, info: SealingLabels.unconfirmedChange.utf8)
    }
}
