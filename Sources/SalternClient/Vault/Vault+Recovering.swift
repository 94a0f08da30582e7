internal import Cryptography

extension Vault {
    /// Sets a new password with a printed code, and opens the vault. All sessions end.
    ///
    /// Example: "Password and recovery" in docs/app.md.
    /// - Parameters:
    ///   - restoringKeyring: True when the user has approved a kept keyring of the server, after
    ///     ``VaultError/keyringReplaced``.
    ///   - authenticator: Answers when the account has passkeys as a second factor.
    /// - Throws: ``VaultError/codeRequired`` or ``VaultError/passkeyRequired(orCode:)`` when the account has a second
    ///   factor; the new password is set, so log in. The following errors leave the password unchanged.
    ///   ``VaultError/keyringUnusable`` when the code opens older keys than the known ones.
    ///   ``VaultError/untrustworthy(_:)`` when the server names more iterations than
    ///   ``StretchingRule/automaticIterationLimit``. ``VaultError/keyringReplaced`` when only a kept keyring can be
    ///   opened.
    public static func recover(
        _ settings: VaultSettings, userid: String, code: RecoveryCode, newPassword: Password,
        restoringKeyring: Bool = false, passkey authenticator: (any PasskeyAuthenticator)? = nil
    ) async throws(VaultError) -> Vault {
        let vault = try await opening(settings)
        try await vault.recover(userid, code, newPassword, restoringKeyring)
        try await vault.logIn(userid, newPassword, nil, passkey: authenticator)
        return vault
    }

    private func recover(
        _ userid: String, _ code: RecoveryCode, _ password: Password, _ restoringKeyring: Bool
    ) async throws(VaultError) {
        try refuseOther(userid)
        let stretched = await code.stretched(saltPrefix: settings.stretching.saltPrefix)
        let reply = try await call { api throws(APIError) in
            try await api.recover(userid: userid, recoveryKey: stretched.passwordKey, deviceName: settings.deviceName)
        }
        try await usingNewSession(reply.session.token) { () async throws(VaultError) in
            let (opened, sealed) = try reply.keyring(openedBy: stretched, restoring: restoringKeyring)
            let keyring = try notOlder(opened, of: reply.accountId)
            let known = try knownIterations()
            try settings.stretching.check(recovered: reply.kdf.iterations, over: known)
            let iterations = max(try await newIterations(nil), reply.kdf.iterations, known)
            let new = try await stretch(password, userid, iterations)
            let next = try numberedForSending(keyring.changed { _ in }, of: userid)
            var (credential, _) = try next.credential(
                new, iterations, replacing: reply.keyringRevision, reply.accountId)
            credential.recoveryKeyring = credential.recoveryKeyring ?? sealed
            _ = try await call { [credential] api throws(APIError) in
                try await credential.sent(noting: store) { credential throws(APIError) in
                    try await api.changeCredential(credential, current: nil, reply.session.token)
                }
            }
        }
    }

    /// Returns the keyring of a code in a form that this device may use. An older keyring must contain all known keys,
    /// is used for no others, and continues from the known counter.
    private func notOlder(_ keyring: Keyring, of account: AccountID) throws(VaultError) -> Keyring {
        guard let knownAccount = try knownAccount() else { return keyring }
        guard knownAccount == account else { throw .otherAccount }
        let counter = try stored { try store.counter(.keyringCounter) }
        let isRetired = try stored { try store.isRetired(keyring.currentKey) }
        if keyring.counter > counter, !isRetired { return keyring }
        let ids = try knownKeyIDs()
        let keys = ids.compactMap { try? keyring.key($0) }
        let digest = try stored { try store.fact(.keyringDigest) }
        let isOther = keyring.counter == counter && digest != nil && digest != keyring.digest
        guard !isRetired, !isOther, !ids.isEmpty, keys.count == ids.count else {
            try stored { try store.note(.keyringRolledBack) }
            throw .keyringUnusable
        }
        var known = keyring
        known.counter = counter
        known.dataKeys = keys
        return known
    }

    private func knownKeyIDs() throws(VaultError) -> [DataKey.ID] {
        let ids = try stored { try store.keyIDs() }
        // A store of an earlier version records them with its next keyring.
        return try ids.isEmpty ? keptOpen()?.keyring.dataKeys.map(\.id) ?? [] : ids
    }
}
