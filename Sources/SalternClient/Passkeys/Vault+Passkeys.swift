extension Vault {
    /// Returns the account's passkeys from the server, the oldest first.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    public func passkeys() async throws(VaultError) -> [PasskeyDescription] {
        let token = try open.token
        return try await call { api throws(APIError) in try await api.listPasskeys(token) }
    }

    /// Adds a passkey as a second factor. Log-ins with the password then need it, or another second factor.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    /// - Parameters:
    ///   - name: The name in the list, 1 to 64 characters.
    ///   - unlocks: True for a passkey that also logs in and opens the items without the password. The authenticator is
    ///     then asked twice, and has to verify its user.
    /// - Throws: ``PasskeyError/doesNotUnlock`` in ``VaultError/passkey(_:)`` when the authenticator has no PRF. The
    ///   passkey is then removed.
    @discardableResult
    public func addPasskey(
        _ name: String, unlocks: Bool, password: Password, with authenticator: any PasskeyAuthenticator
    ) async throws(VaultError) -> PasskeyDescription {
        await serverLock.lock()
        defer { serverLock.unlock() }
        return try await PasskeyChange(password, in: self).add(name, unlocks: unlocks, authenticator, in: self)
    }

    /// Renames a passkey.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    public func renamePasskey(_ id: Base64URLBytes, to name: String) async throws(VaultError) {
        let token = try open.token
        _ = try await call { api throws(APIError) in try await api.renamePasskey(id.bytes, name: name, token) }
    }

    /// Removes a passkey. After the theft of one that unlocks, also call
    /// ``shutOutLostDevice(password:newPassword:onPasswordChange:)``.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    public func removePasskey(_ id: Base64URLBytes, password: Password) async throws(VaultError) {
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await PasskeyChange(password, in: self).remove(id, in: self)
    }

    /// Stops a passkey from unlocking the account. It stays a second factor. To let it unlock again, remove it and add
    /// it. After a theft, remove it instead.
    ///
    /// ```swift
    /// try await vault.stopPasskeyUnlocking(passkey.id, password: password)
    /// ```
    public func stopPasskeyUnlocking(_ id: Base64URLBytes, password: Password) async throws(VaultError) {
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await PasskeyChange(password, in: self).stopUnlocking(id, in: self)
    }

    /// Opens the vault of an existing account by a passkey that unlocks, without userid and password.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    /// - Throws: ``VaultError/passkey(_:)`` with the authenticator's reason, or with ``PasskeyError/doesNotUnlock``.
    ///   ``VaultError/wrongPasskey`` when the server does not accept it. ``VaultError/keyringUnusable`` when the
    ///   keyring cannot be opened or is older than a known one: log in with the password. ``VaultError/otherAccount``
    ///   when the folder contains another account. ``PasskeyError/unconfirmed`` when the folder's keyring does not have
    ///   the passkey.
    public static func logIn(
        _ settings: VaultSettings, passkey authenticator: any PasskeyAuthenticator
    ) async throws(VaultError) -> Vault {
        let vault = try await opening(settings)
        try await PasskeyLogIn.run(authenticator, in: vault)
        return vault
    }

    /// Opens a new session by a passkey that unlocks, after one has ended. It also opens a locked vault. Unsent edits
    /// are kept.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    /// - Throws: The errors of ``logIn(_:passkey:)``. ``VaultError/unsentEdits(count:)`` when another device has
    ///   changed password and keys while this vault was locked.
    public func logInAgain(passkey authenticator: any PasskeyAuthenticator) async throws(VaultError) {
        guard try knownAccount() != nil else { throw .locked }
        await serverLock.lock()
        defer { serverLock.unlock() }
        try await PasskeyLogIn.run(authenticator, in: self)
    }
}
