extension Vault {
    /// Sets a new password. Items are not sealed again, because only the keyring is sealed with the password. All other
    /// sessions end.
    ///
    /// Without a reply, the change may have been applied. The next ``sync()`` or call with the password finds out.
    ///
    /// Example: "Password and recovery" in docs/app.md.
    /// - Throws: ``VaultError/wrongCredentials`` when `current` is not the present password.
    public func changePassword(from current: Password, to new: Password) async throws(VaultError) {
        try await session.credentials.changePassword(from: current, to: new)
    }

    /// Sets another userid. It is another salt, so the same password gives another key. All other sessions end.
    ///
    /// Without a reply, the change may have been applied. The next ``sync()`` or call with the password finds out.
    ///
    /// ```swift
    /// try await vault.changeUserid(to: "ada@example.net", password: password)
    /// ```
    public func changeUserid(to userid: String, password: Password) async throws(VaultError) {
        try await session.credentials.changeUserid(to: userid, password: password)
    }

    /// Creates a recovery code for a person to print. The previous one becomes invalid.
    ///
    /// Without a reply, the previous one may be invalid, too. ``Notice/Kind/recoveryRemoved`` then reports it.
    ///
    /// Example: "Password and recovery" in docs/app.md.
    public func makeRecoveryCode(password: Password) async throws(VaultError) -> RecoveryCode {
        try await session.credentials.makeRecoveryCode(password: password)
    }

    /// Removes the recovery: no printed code can set a new password.
    ///
    /// ```swift
    /// try await vault.removeRecoveryCode(password: password)
    /// ```
    public func removeRecoveryCode(password: Password) async throws(VaultError) {
        try await session.credentials.removeRecoveryCode(password: password)
    }

    /// Generates a new data key and seals all content with it, after the old one may have been disclosed. The password,
    /// passkeys and the printed recovery code stay valid. All other sessions end. Their devices seal unsent edits again
    /// after the next log-in.
    ///
    /// If there is a printed code, ``Notice/Kind/recoveryCodeOutdated`` stays until there is another one. The old
    /// keyring contains the key by which that code authenticates a keyring. The key that names the chunks of
    /// attachments stays, too.
    ///
    /// Each item keeps its edit. Content that was only sealed again can thus be distinguished from new content after
    /// any number of rotations.
    ///
    /// The server applies all changes at once. After an interruption, the next ``sync()`` finds out if they were
    /// applied, and discards the rotation otherwise. Then deleted items and older versions that only the server has
    /// cannot be restored. The new keyring does not contain their key.
    ///
    /// ```swift
    /// try await vault.rotateKeys(password: password)
    /// ```
    /// - Returns: The report of the sync before the rotation.
    /// - Throws: ``VaultError/unreadable`` when the server has an item that cannot be opened,
    ///   ``VaultError/deletionsHeld``.
    @discardableResult
    public func rotateKeys(password: Password) async throws(VaultError) -> SyncReport {
        try await rotation.rotateKeys(password: password)
    }

    /// Shuts out a lost or stolen device. It removes the passkeys that unlock, sets a new password, which ends all
    /// other sessions, replaces the data key, and creates a new printed code if the account has one.
    ///
    /// A lost device that was unlocked keeps the previous data keys, the unlock key and the keys of passkeys. It can
    /// read its own content, and a keyring that is sealed with the previous password. Therefore the password changes
    /// before the rotation.
    ///
    /// Each step is complete on its own. After an error in a later step, call the function again with the password that
    /// is valid then.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Parameter onPasswordChange: Called when the new password is valid.
    /// - Returns: The new printed code to show; nil when the account had none.
    /// - Throws: ``VaultError/deletionsHeld`` before anything is changed.
    public func shutOutLostDevice(
        password: Password, newPassword: Password, onPasswordChange: @Sendable () -> Void = {}
    ) async throws(VaultError) -> RecoveryCode? {
        try await rotation.shutOutLostDevice(
            password: password, newPassword: newPassword, onPasswordChange: onPasswordChange)
    }

    // MARK: Passkeys

    /// Returns the account's passkeys from the server, the oldest first.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    public func passkeys() async throws(VaultError) -> [PasskeyDescription] {
        try await session.serverKeyring.passkeys()
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
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        return try await PasskeyChange(password, session).add(name, unlocks: unlocks, authenticator)
    }

    /// Renames a passkey.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    public func renamePasskey(_ id: Base64URLBytes, to name: String) async throws(VaultError) {
        let token = try open.token
        _ = try await session.call { api throws(APIError) in try await api.renamePasskey(id.bytes, name: name, token) }
    }

    /// Removes a passkey. After the theft of one that unlocks, also call
    /// ``shutOutLostDevice(password:newPassword:onPasswordChange:)``.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    public func removePasskey(_ id: Base64URLBytes, password: Password) async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await PasskeyChange(password, session).remove(id)
    }

    /// Stops a passkey from unlocking the account. It stays a second factor, and opens sessions, but no content. To let
    /// it unlock again, remove it and add it. After a theft, remove it instead.
    ///
    /// ```swift
    /// for key in try await vault.passkeys() { try await vault.stopPasskeyUnlocking(key.id, password: password) }
    /// ```
    public func stopPasskeyUnlocking(_ id: Base64URLBytes, password: Password) async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        try await PasskeyChange(password, session).stopUnlocking(id)
    }
}
