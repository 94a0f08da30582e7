internal import Cryptography
internal import Foundation

/// Creates, lists and deletes the shares of an account.
struct ShareRequests {
    let session: VaultSession

    /// The maximum number of pages that are followed, for a million shares. A hostile server could otherwise send pages
    /// without end.
    private static let pageLimit = 2_000

    /// Returns the account's open shares, the newest first.
    func list() async throws(VaultError) -> [ShareHeader] {
        let token = try session.open.token
        var shares: [ShareHeader] = []
        var ids: Set<String> = []
        var next: String?
        for _ in 0..<Self.pageLimit {
            let cursor = next
            let page = try await session.call { api throws(APIError) in
                try await api.listShares(page: cursor, limit: 500, token)
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
    func end(_ id: String) async throws(VaultError) {
        let token = try session.open.token
        do throws(APIError) {
            try await session.settings.retries({ () throws(APIError) in try await session.api.deleteShare(id, token) })
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
    }

    /// Shares a payload behind a link. The table in docs/protocol.md, "Shares", lists how the page shows it.
    func create(
        _ payload: SecureBytes, base: URL, expiresAt: Date?, maxViews: Int?
    ) async throws(VaultError) -> SharedLink {
        let token = try session.open.token
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
}
