package import Foundation

extension Vault {
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
            _ = try await call { api throws(APIError) in try await api.describeService() }
        }
        return session.serverTime
    }
}
