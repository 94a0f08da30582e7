extension SalternAPI {
    /// `POST /v1/tokens`: a token with which the app authenticates to a service of the operator.
    public func createToken(for audience: String, _ token: Token) async throws(APIError) -> IdentityToken {
        struct Body: Encodable { let audience: String }
        return try await call(Self.request(.post, "/v1/tokens", token: token, Body(audience: audience)))
    }
}
