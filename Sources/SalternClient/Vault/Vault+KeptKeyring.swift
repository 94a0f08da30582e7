internal import Cryptography

extension Vault {
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
        if let known = try knownAccount(), known != login.accountId { throw .otherAccount }
        let kept = try await call { api throws(APIError) in try await api.listKeptKeyrings(token) }
        guard let latest = try latest(of: kept, openedBy: password) else { throw .keyringUnusable }
        guard isAgreed else { throw .keyringReplaced }
        let account = try await call { api throws(APIError) in try await api.getAccount(token) }
        // A recovery keyring is kept as long as its code is valid.
        let keepsCode = account.recovery.set && latest.kept.recoveryKeyring != nil && latest.keyring.recovery != nil
        let next = try numberedForSending(latest.keyring.changed { if !keepsCode { $0.recovery = nil } }, of: userid)
        guard let sealed = try? next.sealed(under: password) else { throw .unreadable }
        let recoveryKeyring = try next.sealedForCode(login.accountId)
        let losesCode = account.recovery.set && !keepsCode
        // The server accepts equal bytes again, so a retry after a lost reply is safe.
        let written = try await call { api throws(APIError) in
            try await api.putKeyring(
                sealed, recoveryKeyring: recoveryKeyring, removingRecovery: losesCode ? password.passwordKey : nil,
                currentPasswordKey: password.passwordKey, .revision(revision), token)
        }
        if losesCode { try stored { try store.note(.recoveryRemoved) } }
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
            if try order(of: keyring, openedBy: password.known) != .rolledBack { latest = (kept, keyring) }
        }
        return latest
    }
}
