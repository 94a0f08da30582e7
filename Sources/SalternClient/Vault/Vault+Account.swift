public import Cryptography
public import Foundation

extension Vault {
    // MARK: The account

    /// Returns plan, limits and usage, from the server.
    ///
    /// ```swift
    /// let account = try await vault.account()
    /// print("\(account.usage.bytes) of \(account.limits.bytes) bytes")
    /// ```
    public func account() async throws(VaultError) -> AccountDescription {
        try await plan.account()
    }

    /// Returns the account's sessions, one for each device that is logged in.
    ///
    /// ```swift
    /// for session in try await vault.sessions() where !session.current { print(session.device?.name ?? "unnamed") }
    /// ```
    public func sessions() async throws(VaultError) -> [SessionDescription] {
        try await requests.sessions()
    }

    /// Ends one session.
    ///
    /// ```swift
    /// for session in try await vault.sessions() where session.device?.name == "old phone" {
    ///     try await vault.endSession(session.id)
    /// }
    /// ```
    public func endSession(_ id: SessionID) async throws(VaultError) {
        try await requests.endSession(id)
    }

    /// Ends all sessions except this one.
    ///
    /// ```swift
    /// try await vault.endOtherSessions()
    /// ```
    /// - Returns: The number of ended sessions.
    @discardableResult
    public func endOtherSessions() async throws(VaultError) -> Int {
        try await requests.endOtherSessions()
    }

    /// Returns a page of the account's security log, the latest event first.
    ///
    /// ```swift
    /// let page = try await vault.events()
    /// for event in page.events { print(event.occurredAt, event.kind) }
    /// ```
    /// - Parameter page: The value from the previous page; nil for the first page.
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for an empty page with a next page.
    public func events(page: String? = nil) async throws(VaultError) -> SecurityLogPage {
        try await requests.events(page: page)
    }

    /// Writes all data of the account on the server to a new file, one JSON object a line.
    ///
    /// ```swift
    /// try await vault.export(to: file, password: password)
    /// ```
    /// - Throws: ``VaultError/unavailable(_:)`` when the export was interrupted; the file is then removed.
    ///   ``StoreError/unusable`` when the file exists.
    public func export(to file: URL, password: Password) async throws(VaultError) {
        try await requests.export(to: file, password: password)
    }

    // MARK: The second factor

    /// Generates a secret for one-time passwords. It is valid once it is confirmed.
    ///
    /// ```swift
    /// let secret = try await vault.beginSecondFactor(password: password)
    /// print(secret.uri)  // as a QR code
    /// let codes = try await vault.confirmSecondFactor(code: typed)
    /// print(codes)  // to print or to write down
    /// ```
    public func beginSecondFactor(password: Password) async throws(VaultError) -> TOTPSecret {
        try await requests.beginSecondFactor(password: password)
    }

    /// Confirms the secret with a code of the authenticator app.
    ///
    /// ```swift
    /// for code in try await vault.confirmSecondFactor(code: typed) { print(code) }
    /// ```
    /// - Returns: Ten recovery codes, shown once.
    public func confirmSecondFactor(code: String) async throws(VaultError) -> [String] {
        try await requests.confirmSecondFactor(code: code)
    }

    /// Returns ten new recovery codes of the second factor. The previous ones become invalid.
    ///
    /// ```swift
    /// for code in try await vault.renewSecondFactorCodes(password: password) { print(code) }
    /// ```
    public func renewSecondFactorCodes(password: Password) async throws(VaultError) -> [String] {
        try await requests.renewSecondFactorCodes(password: password)
    }

    /// Removes the second factor: log-ins then need no code.
    ///
    /// ```swift
    /// try await vault.endSecondFactor(password: password)
    /// ```
    public func endSecondFactor(password: Password) async throws(VaultError) {
        try await requests.endSecondFactor(password: password)
    }

    // MARK: Services

    /// Returns a token that proves the account to a service of the operator.
    ///
    /// ```swift
    /// let token = try await vault.token(for: "billing")
    /// print("valid until", token.expiresAt)
    /// ```
    /// Tokens stay in memory until a minute before their expiry, so request one before each use.
    /// - Parameter audience: One of the server's audiences.
    /// - Throws: ``VaultError/refused(_:)`` with `unknown_audience`, or with `tokens_not_offered` if the server issues
    ///   none.
    public func token(for audience: String) async throws(VaultError) -> IdentityToken {
        try await session.identityToken(for: audience)
    }

    /// Returns the server's time, for a period that begins now. Before the first reply, it sends a request.
    package func fetchServerTime() async throws(VaultError) -> Date {
        if session.api.clock.time() == nil {
            _ = try await session.call { api throws(APIError) in try await api.describeService() }
        }
        return session.serverTime
    }

    private var requests: AccountRequests { AccountRequests(session: session) }

    // MARK: Shares

    /// Returns the account's open shares, the newest first.
    ///
    /// ```swift
    /// for share in try await vault.shares() where share.views == 0 { try await vault.endShare(share.id) }
    /// ```
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for a list with repetitions or without
    ///   an end.
    public func shares() async throws(VaultError) -> [ShareHeader] {
        try await shareRequests.list()
    }

    /// Deletes a share: its link becomes invalid.
    ///
    /// ```swift
    /// for share in try await vault.shares() where share.views == 0 { try await vault.endShare(share.id) }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the account has no such share.
    public func endShare(_ id: String) async throws(VaultError) {
        try await shareRequests.end(id)
    }

    /// Shares a payload behind a link. The table in docs/protocol.md, "Shares", lists how the page shows it.
    ///
    /// Example: "Share" in docs/app.md.
    /// - Parameter base: The server's public address, `https://host`. The link uses it instead of any address from the
    ///   server.
    public func share(
        _ payload: SecureBytes, base: URL, expiresAt: Date? = nil, maxViews: Int? = nil
    ) async throws(VaultError) -> SharedLink {
        try await shareRequests.create(payload, base: base, expiresAt: expiresAt, maxViews: maxViews)
    }

    /// Shares a text behind a link. The page shows a text that is a JSON object as a table of its members.
    ///
    /// ```swift
    /// let shared = try await vault.share(text: note.text, base: url, expiresAt: Date() + 86_400, maxViews: 1)
    /// print(shared.url)
    /// ```
    /// - Parameters:
    ///   - base: The server's public address, `https://host`.
    ///   - expiresAt: The time at which the link ends; nil for the longest time that the server allows.
    ///   - maxViews: The maximum number of times that the link can be opened; nil for no limit.
    public func share(
        text: String, base: URL, expiresAt: Date? = nil, maxViews: Int? = nil
    ) async throws(VaultError) -> SharedLink {
        try await share(SecureBytes(text), base: base, expiresAt: expiresAt, maxViews: maxViews)
    }

    /// Opens a link of this server and uses one view.
    ///
    /// Example: "Share" in docs/app.md.
    /// - Throws: ``VaultError/notFound`` for a malformed link, without a request. ``VaultError/wrongShareKey(_:)`` with
    ///   the fetched share, for which another key can be tried without another view.
    public func open(_ link: URL) async throws(VaultError) -> SecureBytes {
        try await SharedLink.open(link, over: settings.transport)
    }

    private var shareRequests: ShareRequests { ShareRequests(session: session) }
}

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
    /// after the next log-in. Then replaces the account's keys in shared vaults (``SharedVaultProblem/keysDue``).
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
