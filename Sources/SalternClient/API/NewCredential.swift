internal import Cryptography

/// A new password key, with its iterations and keyrings.
public struct NewCredential: Sendable {
    /// The key for the server; see ``StretchedPassword/passwordKey``.
    public var passwordKey: SecretBytes
    /// The iterations by which the key was derived.
    public var iterations: Int
    /// The keyring, sealed under the new password; nil for an account without one.
    public var keyring: [UInt8]?
    /// The revision of the keyring that the new one replaces.
    public var keyringRevision: Revision?
    /// The new keyring for the recovery code, when data keys change; nil otherwise.
    public var recoveryKeyring: [UInt8]?
    /// A new box for each passkey that unlocks the keyring.
    public var passkeyBoxes: [PasskeyBox]

    /// Creates a credential. The server replaces the password key, the keyrings and the boxes in one transaction.
    public init(
        passwordKey: SecretBytes, iterations: Int, keyring: [UInt8]?, keyringRevision: Revision?,
        recoveryKeyring: [UInt8]? = nil, passkeyBoxes: [PasskeyBox] = []
    ) {
        self.passwordKey = passwordKey
        self.iterations = iterations
        self.keyring = keyring
        self.keyringRevision = keyringRevision
        self.recoveryKeyring = recoveryKeyring
        self.passkeyBoxes = passkeyBoxes
    }

    /// Sends the credential. When the server names fewer passkeys than have a box, those boxes are sent again alone: a
    /// passkey can have keys in the keyring and no box on the server.
    func sent<Reply: Sendable>(
        _ send: (NewCredential) async throws(APIError) -> Reply
    ) async throws(APIError) -> Reply {
        do throws(APIError) { return try await send(self) } catch {
            guard error.code == .passkeyBoxesRequired, case .problem(let problem) = error,
                let named = problem.passkeys.map(Set.init), named.count < passkeyBoxes.count,
                named.isSubset(of: passkeyBoxes.map(\.id))
            else { throw error }
            var credential = self
            credential.passkeyBoxes.removeAll { !named.contains($0.id) }
            return try await send(credential)
        }
    }
}

extension Keyring {
    /// Returns a new credential and its sealed keyring, also sealed for the printed code, and its boxes for passkeys.
    func credential(
        _ password: StretchedPassword, _ iterations: Int, replacing revision: Revision?, _ account: AccountID
    ) throws(VaultError) -> (credential: NewCredential, sealed: [UInt8]) {
        guard let sealed = try? sealed(under: password) else { throw .unreadable }
        let credential = NewCredential(
            passwordKey: password.passwordKey, iterations: iterations, keyring: sealed, keyringRevision: revision,
            recoveryKeyring: try sealedForCode(account),
            passkeyBoxes: try boxes(of: password.unlockKey, account))
        return (credential, sealed)
    }

    /// Seals the keyring for the printed code; nil when there is no code.
    func sealedForCode(_ account: AccountID) throws(VaultError) -> [UInt8]? {
        guard let recovery else { return nil }
        guard let sealed = try? recovery.sealedKeyring(self, account: account) else { throw .unreadable }
        return sealed
    }

    /// Seals an unlock key for all passkeys of the keyring.
    private func boxes(of unlockKey: SecureBytes, _ account: AccountID) throws(VaultError) -> [PasskeyBox] {
        var boxes: [PasskeyBox] = []
        for keys in passkeys {
            guard let box = try? keys.box(of: unlockKey, counter: counter, account: account) else { throw .unreadable }
            boxes.append(box)
        }
        return boxes
    }
}
