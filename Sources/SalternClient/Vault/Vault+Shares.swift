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
            try await settings.retries({ () throws(APIError) in try await api.deleteShare(id, token) })
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
    }
}
