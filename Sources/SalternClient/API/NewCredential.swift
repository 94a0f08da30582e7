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

    /// Sends the credential. When the server requires boxes of other passkeys, it is sent again for those.
    ///
    /// A passkey can have keys in the keyring and no box on the server: it gets none. Another client can have added a
    /// passkey that the keyring does not have: its box is removed, because nothing can be sealed for it.
    /// - Parameter store: Receives the notice of passkeys without a box. When the outcome is certain, the caller ends
    ///   it by ``Store/keepStopped()`` or ``Store/takeBackStopped()``.
    func sent<Reply: Sendable>(
        noting store: Store, _ send: (NewCredential) async throws(APIError) -> Reply
    ) async throws(APIError) -> Reply {
        do throws(APIError) { return try await send(self) } catch {
            guard let fitted = fitted(to: error) else { throw error }
            let removed = fitted.passkeyBoxes.filter { $0.box == nil }.map(\.id)
            // Before the request: its reply can be lost.
            if !removed.isEmpty { try? store.noteStopped(removed) }
            return try await send(fitted)
        }
    }

    /// Sends the credential as ``sent(noting:_:)``, repeats it as long as errors are temporary, and ends the notice.
    /// After an uncertain outcome the notice stays until the next change.
    func sent<Reply: Sendable>(
        noting store: Store, _ retries: Retries, _ send: (NewCredential) async throws(APIError) -> Reply
    ) async throws(APIError) -> Reply {
        try? store.keepStopped()
        var mayBeDone = false
        do throws(APIError) {
            let reply = try await retries({ () throws(APIError) in
                do throws(APIError) { return try await sent(noting: store, send) } catch {
                    mayBeDone = mayBeDone || error.mayBeDone
                    throw error
                }
            })
            try? store.keepStopped()
            return reply
        } catch {
            if !mayBeDone { try? store.takeBackStopped() }
            throw error
        }
    }

    /// Returns the credential with boxes for the passkeys that the server names, and for no others. The server has
    /// compared the keyring's revision before, so the keyring is the present one.
    private func fitted(to error: APIError) -> NewCredential? {
        guard error.code == .passkeyBoxesRequired, case .problem(let problem) = error, let named = problem.passkeys,
            PasskeyKeys.canBelong(named), Set(named) != Set(passkeyBoxes.map(\.id))
        else { return nil }
        var credential = self
        credential.passkeyBoxes = named.map { id in
            passkeyBoxes.first { $0.id == id } ?? PasskeyBox(id: id, box: nil)
        }
        return credential
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
            boxes.append(PasskeyBox(id: Base64URLBytes(keys.id), box: Base64Bytes(box)))
        }
        return boxes
    }
}
