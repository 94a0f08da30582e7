internal import Cryptography

/// The keyring on the server, which other devices may have changed.
struct ServerKeyring {
    let session: VaultSession

    /// Fetches the keyring from the server, which another device may have changed.
    /// - Throws: ``VaultError/keyringUnusable`` for one that cannot be opened or is older than the known one.
    func latestKeyring() async throws(VaultError) -> (keyring: Keyring, revision: Revision) {
        let opened = try session.open
        let reply = try await session.call { api throws(APIError) in try await api.getKeyring(opened.token) }
        guard let reply, let keyring = try? Keyring(sealed: reply.keyring.bytes, openedBy: opened.password) else {
            throw .keyringUnusable
        }
        if try session.keys.order(of: keyring, openedBy: opened.password) == .rolledBack {
            try session.stored { try session.store.note(.keyringRolledBack) }
            throw .keyringUnusable
        }
        return (keyring, reply.revision)
    }

    /// Fetches the keyring, without the keys of passkeys that the account no longer has. For these no unlock key is
    /// sealed.
    func keyringForSealing() async throws(VaultError) -> (keyring: Keyring, revision: Revision) {
        var (keyring, revision) = try await latestKeyring()
        if keyring.passkeys.isEmpty { return (keyring, revision) }
        // After the keyring, because a passkey is listed before its keys are in the keyring.
        let listed = Set(try await passkeys().map(\.id.bytes))
        keyring.passkeys.removeAll { !listed.contains($0.id) }
        return (keyring, revision)
    }

    /// Returns the account's passkeys, the oldest first.
    func passkeys() async throws(VaultError) -> [PasskeyDescription] {
        let token = try session.open.token
        return try await session.call { api throws(APIError) in try await api.listPasskeys(token) }
    }

    // MARK: Restoring

    /// Replaces an older keyring on the server by the known one. The result also has the older one's keys, because the
    /// server's items are as old.
    func putKeyringBack(
        over older: Keyring, of login: LoginReply, _ userid: String, _ password: StretchedPassword
    ) async throws(VaultError) -> (Keyring, sealed: [UInt8], Revision?) {
        let token = login.session.token
        guard let revision = login.keyringRevision, try session.keys.knownAccount() == login.accountId,
            let sealer = try session.keys.storeSealer(login.accountId, password.known)
        else { throw .keyringUnusable }
        let own = sealer.keyring
        // Otherwise an earlier password could open content that was sealed since.
        let isNewer = own.dataKeys.contains { key in !older.dataKeys.contains { $0.id == key.id } }
        let known = try session.stored { try session.store.fact(.keyring) }
        let isOwn = known.flatMap { try? Keyring(sealed: $0, openedBy: password) } != nil
        guard isOwn || !isNewer else { throw .keyringNotRestorable }
        let account = try await session.call { api throws(APIError) in try await api.getAccount(token) }
        // The server's code is that of the older keyring. A removed code gets no new content.
        let code = account.recovery.set ? older.recovery?.publicKey.bytes : nil
        let keepsCode = code != nil && code == own.recovery?.publicKey.bytes
        var restored = own.opening(also: older)
        restored.counter = max(own.counter, older.counter)
        // The same holds for passkeys.
        restored.passkeys = own.passkeys.filter { keys in older.passkeys.contains { $0.isSame(as: keys) } }
        let next = try session.keys.numberedForSending(
            restored.changed { if !keepsCode { $0.recovery = nil } }, of: userid)
        guard let sealed = try? next.sealed(under: password) else { throw .unreadable }
        let recoveryKeyring = try next.sealedForCode(login.accountId)
        // The server accepts equal bytes again, so a retry after a lost reply is safe.
        let written = try await session.call { api throws(APIError) in
            try await api.putKeyring(
                sealed, recoveryKeyring: recoveryKeyring, removingRecovery: keepsCode ? nil : password.passwordKey,
                .revision(revision), token)
        }
        for removed in older.passkeys where !next.passkeys.contains(where: { $0.isSame(as: removed) }) {
            try await session.call { api throws(APIError) in
                try await api.removePasskey(removed.id, currentPasswordKey: password.passwordKey, token)
            }
        }
        let hadCode = account.recovery.set || own.recovery != nil || older.recovery != nil
        try session.stored {
            if hadCode && !keepsCode { try session.store.note(.recoveryRemoved) }
        }
        return (next, sealed, written)
    }

    /// Replaces a keyring that cannot be opened by a kept keyring of the server.
    /// - Parameter isAgreed: True when the user has approved. The present keyring may also be of a later version of
    ///   this kit.
    /// - Returns: The keyring that is valid now.
    /// - Throws: ``VaultError/keyringUnusable`` when no kept keyring can be opened, or each is older than the known
    ///   one. ``VaultError/keyringReplaced`` when one can be opened and the user has not approved.
    func restoreKeyring(
        over login: LoginReply, _ userid: String, _ password: StretchedPassword, isAgreed: Bool
    ) async throws(VaultError) -> (Keyring, sealed: [UInt8], Revision?) {
        let token = login.session.token
        guard login.keyring != nil, let revision = login.keyringRevision else { throw .keyringUnusable }
        if let known = try session.keys.knownAccount(), known != login.accountId { throw .otherAccount }
        let kept = try await session.call { api throws(APIError) in try await api.listKeptKeyrings(token) }
        guard let latest = try latest(of: kept, openedBy: password) else { throw .keyringUnusable }
        guard isAgreed else { throw .keyringReplaced }
        let account = try await session.call { api throws(APIError) in try await api.getAccount(token) }
        // A recovery keyring is kept as long as its code is valid.
        let keepsCode = account.recovery.set && latest.kept.recoveryKeyring != nil && latest.keyring.recovery != nil
        let next = try session.keys.numberedForSending(
            latest.keyring.changed { if !keepsCode { $0.recovery = nil } }, of: userid)
        guard let sealed = try? next.sealed(under: password) else { throw .unreadable }
        let recoveryKeyring = try next.sealedForCode(login.accountId)
        let losesCode = account.recovery.set && !keepsCode
        // The server accepts equal bytes again, so a retry after a lost reply is safe.
        let written = try await session.call { api throws(APIError) in
            try await api.putKeyring(
                sealed, recoveryKeyring: recoveryKeyring, removingRecovery: losesCode ? password.passwordKey : nil,
                currentPasswordKey: password.passwordKey, .revision(revision), token)
        }
        if losesCode { try session.stored { try session.store.note(.recoveryRemoved) } }
        return (next, sealed, written)
    }

    /// Returns the latest kept keyring that can be opened and is not older than the known one.
    private func latest(
        of kept: [KeptKeyring], openedBy password: StretchedPassword
    ) throws(VaultError) -> (kept: KeptKeyring, keyring: Keyring)? {
        var latest: (kept: KeptKeyring, keyring: Keyring)?
        for kept in kept {
            guard let sealed = kept.keyring?.bytes, let keyring = try? Keyring(sealed: sealed, openedBy: password),
                keyring.counter > latest?.keyring.counter ?? 0
            else { continue }
            if try session.keys.order(of: keyring, openedBy: password.known) != .rolledBack { latest = (kept, keyring) }
        }
        return latest
    }
}
