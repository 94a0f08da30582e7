internal import Cryptography
internal import Foundation

/// Ends the use of an account on this device, by a sign-out or by deleting the account.
struct AccountRemoval {
    let session: VaultSession

    /// Removes all data from this device, and then ends the session. The request is limited to three seconds. Running
    /// calls write nothing afterwards, and the vault cannot be used again.
    func signOut(
        discardingUnsentEdits: Bool = false, forgettingHeldDeletions: Bool = false
    ) async throws(VaultError) -> Vault.SessionEnd {
        if session.store.isClosed { return .left }
        var token = session.opened?.token
        if token == nil, let kept = try? session.secret(.token) { token = Token(kept) }
        try forgetEverything(
            keepsUnsentEdits: !discardingUnsentEdits, keepsHeldDeletions: !forgettingHeldDeletions)
        // The request comes last. Edits during it would be lost, and a server without a reply would prevent the
        // removal.
        guard let token, token != .missing else { return .left }
        return await endSession(token)
    }

    private func endSession(_ token: Token) async -> Vault.SessionEnd {
        let api = session.api
        let patience = session.settings.signOutPatience
        return await withTaskGroup { group in
            group.addTask { () -> Vault.SessionEnd in
                do throws(APIError) {
                    try await api.endCurrentSession(token)
                    return .ended
                } catch {
                    return error.code == .unauthenticated ? .ended : .left
                }
            }
            group.addTask {
                try? await Task.sleep(for: patience)
                return .left
            }
            defer { group.cancelAll() }
            return await group.next() ?? .left
        }
    }

    /// Removes all data of the account from this device.
    func forgetEverything(keepsUnsentEdits: Bool, keepsHeldDeletions: Bool = false) throws(VaultError) {
        if session.store.isClosed { return }
        try session.transaction {
            let unsent = try session.store.changeCountOfAll()
            guard unsent == 0 || !keepsUnsentEdits else { throw VaultError.unsentEdits(count: unsent) }
            if keepsHeldDeletions, try !session.store.ownersHoldingDeletions().isEmpty {
                throw VaultError.deletionsHeld
            }
            try session.store.removeEverything()
            try session.store.set(.isSignedOut, 1)
        }
        let ending = Result { try session.deviceSecrets.finishSignOut() }
        session.store.shrink()
        session.store.close()
        session.opened = nil
        // Readers of sequences receive the end of the data.
        session.observers.items.notify(ItemChanges(ids: [], collections: nil))
        session.observers.edits.notify(.account)
        session.observers.end()
        try session.stored { try ending.get() }
    }

    // MARK: Deleting the account

    /// Deletes the account with all of its data, on the server and on this device. It cannot be undone.
    /// - Parameter deletingVaults: True to delete the shared vaults of which the account is the owner, for all members.
    func leave(
        password: Password, discardingUnsentEdits: Bool = false, deletingVaults: Bool = false
    ) async throws(VaultError) {
        // Without a session the account may already be deleted, which is checked below.
        do throws(VaultError) { try await session.unconfirmed.settleBeforeProof() } catch .sessionEnded {}
        let opened = try session.open
        let credentials = try possibleCredentials(opened)
        let (proof, isOwn, candidates) = try await proofs(password, credentials)
        if !discardingUnsentEdits {
            let unsent = try session.stored { try session.store.changeCountOfAll() }
            guard unsent == 0 else { throw .unsentEdits(count: unsent) }
        }
        let before = try session.stored { try session.store.number(.leaving) }
        var mayBeDone = before.map { (0..<3_600).contains(Self.now - $0) } ?? false
        var hasLeftDevice = false
        try session.stored { try session.store.set(.leaving, Self.now) }
        do throws(APIError) {
            try await session.settings.retries({ () throws(APIError) in
                do throws(APIError) {
                    try await session.api.deleteAccount(
                        currentPasswordKey: proof, deletingVaults: deletingVaults, opened.token)
                } catch {
                    if error.mayBeDone { (mayBeDone, hasLeftDevice) = (true, true) }
                    throw error
                }
            })
        } catch {
            // A wrong or former password also fails while the account exists.
            guard error.code == .unauthenticated, mayBeDone, isOwn, candidates.count == credentials.count,
                try await isGone(candidates)
            else {
                let isKnown = error.code == .unauthenticated ? isOwn || !mayBeDone : error.isRefusal
                try session.stored {
                    if isKnown {
                        // If the request is rejected now, earlier ones were not carried out.
                        try session.store.set(.leaving, nil)
                    } else if !hasLeftDevice {
                        try session.store.set(.leaving, before.map { Array(String($0).utf8) })
                    }
                }
                throw error.code == .ownsVaults ? .shared(.ownsVaults) : VaultError(error)
            }
        }
        try forgetEverything(keepsUnsentEdits: !discardingUnsentEdits)
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// The data of a log-in.
    private struct Credential {
        let userid: String
        let iterations: Int
        let password: KnownPassword
    }

    /// Returns the credentials that may be valid: the known one, and that of a change whose outcome is uncertain.
    private func possibleCredentials(_ opened: VaultSession.Opened) throws(VaultError) -> [Credential] {
        var credentials = [
            Credential(userid: opened.userid, iterations: try session.keys.knownIterations(), password: opened.password)
        ]
        if case .credential(let changed)? = try session.unconfirmed.unconfirmedChange()?.outcome,
            let password = try session.unconfirmed.password(of: changed, under: opened.password)
        {
            credentials.append(
                Credential(userid: changed.userid, iterations: changed.iterations, password: password))
        }
        return credentials
    }

    /// The proof of a log-in.
    private struct Proof {
        let userid: String
        let passwordKey: SecretBytes
    }

    /// Derives the password key for the server.
    /// - Returns: Also true when it is of a credential that may be valid, and the proofs of these credentials. Some are
    ///   missing when the outcome of a password change is uncertain and this process does not have the other password.
    private func proofs(
        _ password: Password, _ credentials: [Credential]
    ) async throws(VaultError) -> (SecretBytes, isOwn: Bool, all: [Proof]) {
        var first: SecretBytes?
        var own: SecretBytes?
        var all: [Proof] = []
        for credential in credentials {
            let stretched = try await session.keys.stretch(password, credential.userid, credential.iterations)
            first = first ?? stretched.passwordKey
            let matches = credential.password.matches(stretched)
            if matches { own = own ?? stretched.passwordKey }
            if let key = matches ? stretched.passwordKey : credential.password.passwordKey {
                all.append(Proof(userid: credential.userid, passwordKey: key))
            }
        }
        guard let first else { throw .locked }
        return (own ?? first, own != nil, all)
    }

    /// Returns true when no credential opens an account. A session may also have ended for another reason.
    private func isGone(_ credentials: [Proof]) async throws(VaultError) -> Bool {
        let device = DeviceClaim(
            name: session.settings.deviceName, token: try session.secret(.deviceToken).map(Token.init))
        for credential in credentials {
            do throws(VaultError) {
                let reply = try await session.call { api throws(APIError) in
                    try await api.logIn(
                        userid: credential.userid, passwordKey: credential.passwordKey, device: device)
                }
                try? await session.api.endCurrentSession(reply.session.token)
                return false
            } catch {
                switch error {
                case .wrongCredentials: continue
                case .codeRequired, .passkeyRequired: return false
                default: throw error
                }
            }
        }
        return true
    }
}
