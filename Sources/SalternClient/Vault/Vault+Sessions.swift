extension Vault {
    /// Registers a new account, and opens its vault. When the reply is lost, the same call can be repeated.
    ///
    /// Example: "First launch" in docs/app.md.
    /// - Parameters:
    ///   - iterations: The PBKDF2 iterations; nil for the server's recommendation within the limits of
    ///     ``StretchingRule``.
    ///   - invite: The operator's invite, if the server requires one.
    /// - Throws: ``VaultError/refused(_:)`` with ``Problem/Code/useridTaken`` when another account has the userid, or
    ///   when the server rejects registrations. ``VaultError/useridNotCanonical(canonical:)`` with the form for the
    ///   next call. ``VaultError/otherAccount`` when the folder contains another account.
    ///   ``VaultError/unavailable(_:)`` without a reply.
    public static func signUp(
        _ settings: VaultSettings, userid: String, password: Password, iterations: Int? = nil, invite: String? = nil
    ) async throws(VaultError) -> Vault {
        let vault = try await opening(settings)
        try await vault.signUp(userid, password, iterations, invite)
        return vault
    }

    /// Opens the vault of an existing account.
    ///
    /// Example: "First launch" in docs/app.md.
    /// - Parameters:
    ///   - code: Six digits or a recovery code, after ``VaultError/codeRequired``.
    ///   - restoringKeyring: True when the user has approved that a kept keyring of the server replaces the present
    ///     one, after ``VaultError/keyringReplaced``.
    ///   - authenticator: Answers when the account has passkeys as a second factor.
    /// - Throws: ``VaultError/wrongCredentials``. ``VaultError/codeRequired``, ``VaultError/wrongCode``,
    ///   ``VaultError/passkeyRequired(orCode:)`` or ``VaultError/wrongPasskey`` with a second factor.
    ///   ``VaultError/useridNotCanonical(canonical:)`` with the form for the next call.
    ///   ``VaultError/untrustworthy(_:)`` for parameters that this app does not use. ``VaultError/keyringReplaced`` or
    ///   ``VaultError/keyringUnusable`` when the keyring cannot be opened or is older than a known one.
    ///   ``VaultError/otherAccount`` when the folder contains another account. ``VaultError/unavailable(_:)`` without a
    ///   reply.
    public static func logIn(
        _ settings: VaultSettings, userid: String, password: Password, code: String? = nil,
        restoringKeyring: Bool = false, passkey authenticator: (any PasskeyAuthenticator)? = nil
    ) async throws(VaultError) -> Vault {
        let vault = try await opening(settings)
        try await vault.logIn(userid, password, code, restoringKeyring, authenticator)
        return vault
    }

    /// Opens a new session after one has ended. Unsent edits are kept.
    ///
    /// Example: "Unlock and log in again" in docs/app.md.
    /// - Parameters:
    ///   - code: Six digits or a recovery code, after ``VaultError/codeRequired``.
    ///   - userid: The new userid, when another device has changed it.
    ///   - restoringKeyring: True when the user has approved that a keyring is restored. After
    ///     ``Notice/Kind/keyringRolledBack`` the known keyring replaces the server's older one, because its database
    ///     was restored from a backup. Fewer iterations than the known ones are then accepted, too. After
    ///     ``VaultError/keyringReplaced`` a kept keyring of the server replaces one that cannot be opened. A printed
    ///     code that is not in both keyrings becomes invalid (``Notice/Kind/recoveryRemoved``), and so does a passkey.
    ///   - authenticator: Answers when the account has passkeys as a second factor.
    /// - Throws: ``VaultError/keyringNotRestorable`` when the known keyring is sealed with another password and has
    ///   newer keys. ``VaultError/unsentEdits(count:)`` when another device has changed password and keys while this
    ///   vault was locked: unlock it with the previous password, then log in again.
    public func logInAgain(
        password: Password, code: String? = nil, userid: String? = nil, restoringKeyring: Bool = false,
        passkey authenticator: (any PasskeyAuthenticator)? = nil
    ) async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        guard let known = try session.keys.userid else { throw .locked }
        guard let userid else {
            return try await logIn.logIn(asKnown: known, password, code, restoringKeyring, authenticator)
        }
        try await logIn.logIn(
            userid, password, code, renamed: true, restoringKeyring: restoringKeyring, passkey: authenticator)
    }

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
        try await vault.recover(userid, code, newPassword, restoringKeyring, authenticator)
        return vault
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
        try await vault.logIn(by: authenticator)
        return vault
    }

    /// Opens a new session by a passkey that unlocks, after one has ended. It also opens a locked vault. Unsent edits
    /// are kept.
    ///
    /// Example: "Passkeys of an app" in docs/passkeys-in-clients.md.
    /// - Throws: The errors of ``logIn(_:passkey:)``. ``VaultError/unsentEdits(count:)`` when another device has
    ///   changed password and keys while this vault was locked.
    public func logInAgain(passkey authenticator: any PasskeyAuthenticator) async throws(VaultError) {
        await session.serverLock.lock()
        defer { session.serverLock.unlock() }
        guard try session.keys.knownAccount() != nil else { throw .locked }
        try await logIn(by: authenticator)
    }

    // MARK: Opening and locking

    /// Opens the vault of the last log-in, without password and without network.
    ///
    /// Example: "Launch" in docs/app.md.
    /// - Returns: nil when no account is logged in on this device. A locked vault (``isLocked``) needs ``unlock(_:)``.
    /// - Throws: ``VaultError/store(_:)`` when the folder cannot be opened, such as ``StoreError/inUse``.
    public static func resume(_ settings: VaultSettings) async throws(VaultError) -> Vault? {
        let vault = try await opening(settings)
        return try await vault.resume() ? vault : nil
    }

    /// Locks the vault: its keys are deleted, and the password is needed again. No request is sent. Running calls
    /// complete, and the vault stays locked.
    ///
    /// The device key is replaced, so that remaining copies of the keys in the store's files cannot be opened.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Throws: ``VaultError/store(_:)`` when the disk or the key store fails. The keys are then deleted from memory,
    ///   but may remain on the disk.
    public func lock() throws(VaultError) {
        try session.keys.lock()
    }

    /// True when items cannot be read until ``unlock(_:)`` is called.
    public var isLocked: Bool { session.opened == nil }

    /// Opens a locked vault, or one whose device key is lost, without network. In the latter case the session is lost,
    /// too: ``sync()`` throws ``VaultError/sessionEnded`` until
    /// ``logInAgain(password:code:userid:restoringKeyring:passkey:)``.
    ///
    /// Example: "Unlock and log in again" in docs/app.md.
    /// - Throws: ``VaultError/wrongCredentials`` for another password than the last one of this device.
    ///   ``VaultError/sessionEnded`` when no account is logged in on this device.
    public func unlock(_ password: Password) async throws(VaultError) {
        try await session.keys.unlock(password)
    }

    /// The account's last userid on this device; nil when no account is logged in.
    public var userid: String? { get throws(VaultError) { try session.keys.userid } }

    // MARK: Ending

    /// The end of the session after a sign-out.
    public enum SessionEnd: Sendable {
        /// The server has ended it.
        case ended
        /// The server has not replied in time, or no account was logged in. A remaining session ends after a period
        /// without use, or from another device (``endSession(_:)``).
        case left
    }

    /// Removes all data from this device, and then ends the session. The request is limited to three seconds. Running
    /// calls write nothing afterwards, and the vault cannot be used again.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Parameters:
    ///   - discardingUnsentEdits: False to throw when there are unsent edits, with nothing changed.
    ///   - forgettingHeldDeletions: False to throw when deletions wait for approval, here or in a folder. With true
    ///     they are undone if a folder still has the files, which are new to the next vault.
    /// - Throws: ``VaultError/unsentEdits(count:)``, ``VaultError/deletionsHeld``.
    @discardableResult
    public func signOut(
        discardingUnsentEdits: Bool = false, forgettingHeldDeletions: Bool = false
    ) async throws(VaultError) -> SessionEnd {
        try await AccountRemoval(session: session).signOut(
            discardingUnsentEdits: discardingUnsentEdits, forgettingHeldDeletions: forgettingHeldDeletions)
    }

    /// Deletes the account with all of its data, on the server and on this device. It cannot be undone.
    ///
    /// Without a reply, the account may be deleted. Call the function again within an hour to find out.
    ///
    /// ```swift
    /// try await vault.leave(password: Password(typed))
    /// ```
    ///
    /// - Parameters:
    ///   - discardingUnsentEdits: False to throw when there are unsent edits, with nothing changed.
    ///   - deletingVaults: False to throw ``SharedVaultError/ownsVaults`` when the account owns shared vaults.
    /// - Throws: ``VaultError/unsentEdits(count:)``. If they were made during the request, the account may be deleted.
    public func leave(
        password: Password, discardingUnsentEdits: Bool = false, deletingVaults: Bool = false
    ) async throws(VaultError) {
        try await AccountRemoval(session: session).leave(
            password: password, discardingUnsentEdits: discardingUnsentEdits, deletingVaults: deletingVaults)
    }

    // MARK: Steps

    private var logIn: LogIn { LogIn(session: session) }

    private func signUp(
        _ userid: String, _ password: Password, _ iterations: Int?, _ invite: String?
    ) async throws(VaultError) { try await logIn.signUp(userid, password, iterations, invite) }

    private func logIn(
        _ userid: String, _ password: Password, _ code: String?, _ restoringKeyring: Bool,
        _ authenticator: (any PasskeyAuthenticator)?
    ) async throws(VaultError) {
        try await logIn.logIn(asKnown: userid, password, code, restoringKeyring, authenticator)
    }

    private func logIn(by authenticator: any PasskeyAuthenticator) async throws(VaultError) {
        try await PasskeyLogIn(session: session).run(authenticator)
    }

    private func recover(
        _ userid: String, _ code: RecoveryCode, _ password: Password, _ restoringKeyring: Bool,
        _ authenticator: (any PasskeyAuthenticator)?
    ) async throws(VaultError) {
        try await logIn.recover(userid, code, password, restoringKeyring)
        try await logIn.logIn(userid, password, nil, passkey: authenticator)
    }

    func resume() throws(VaultError) -> Bool { try session.keys.resume() }
}
