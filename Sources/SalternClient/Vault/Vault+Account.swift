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
