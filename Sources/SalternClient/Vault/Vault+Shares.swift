public import Cryptography
public import Foundation

extension Vault {
    /// The maximum number of pages that are followed, for a million shares. A hostile server could otherwise send pages
    /// without end.
    private static let pageLimit = 2_000

    /// Returns the account's open shares, the newest first.
    ///
    /// ```swift
    /// for share in try await vault.shares() where share.views == 0 { try await vault.endShare(share.id) }
    /// ```
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for a list with repetitions or without
    ///   an end.
    public func shares() async throws(VaultError) -> [ShareHeader] {
        let token = try open.token
        var shares: [ShareHeader] = []
        var ids: Set<String> = []
        var next: String?
        for _ in 0..<Self.pageLimit {
            let page = try await call { [next] api throws(APIError) in
                try await api.listShares(page: next, limit: 500, token)
            }
            guard page.shares.count <= 500, page.shares.allSatisfy({ ids.insert($0.id).inserted }) else { break }
            shares += page.shares
            guard let following = page.nextPage else { return shares }
            if following == next { break }
            next = following
        }
        throw .unavailable(.unexpectedReply)
    }

    /// Deletes a share: its link becomes invalid.
    ///
    /// ```swift
    /// for share in try await vault.shares() where share.views == 0 { try await vault.endShare(share.id) }
    /// ```
    /// - Throws: ``VaultError/notFound`` when the account has no such share.
    public func endShare(_ id: String) async throws(VaultError) {
        let token = try open.token
        do throws(APIError) {
            try await settings.retries({ () throws(APIError) in try await session.api.deleteShare(id, token) })
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
    }

    /// Shares a payload behind a link. The table in docs/protocol.md, "Shares", lists how the page shows it.
    ///
    /// Example: "Share" in docs/app.md.
    /// - Parameter base: The server's public address, `https://host`. The link uses it instead of any address from the
    ///   server.
    public func share(
        _ payload: SecureBytes, base: URL, expiresAt: Date? = nil, maxViews: Int? = nil
    ) async throws(VaultError) -> SharedLink {
        let token = try open.token
        let passphrase = SharedLink.randomPassphrase()
        guard
            let content = try? SharedLink.content(payload, passphrase, expiresAt: expiresAt, maxViews: maxViews)
        else { throw .unreadable }
        let header: ShareHeader
        // The request is not repeated, because a second one would create another share.
        do throws(APIError) { header = try await session.api.createShare(content, token) } catch {
            throw VaultError(error)
        }
        let fragment = passphrase.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        guard let manageToken = header.manageToken, ShareAddress.isID(header.id),
            let server = PinnedServer.canonical(base.absoluteString),
            let url = URL(string: "\(server)/s/\(header.id)#\(fragment)")
        else { throw .unavailable(.unexpectedReply) }
        return SharedLink(url: url, manageToken: manageToken, id: header.id)
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
}
