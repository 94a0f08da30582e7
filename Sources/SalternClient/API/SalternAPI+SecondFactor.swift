extension SalternAPI {
    private struct Codes: Decodable { let recoveryCodes: [String] }

    /// Creates a secret, which is valid once it is confirmed (`POST /v1/account/totp`).
    public func beginTOTP(currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) -> TOTPSecret {
        try await call(
            Self.request(.post, "/v1/account/totp", token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }

    /// Confirms the secret by a code (`POST /v1/account/totp/confirm`).
    /// - Returns: Ten recovery codes, shown once.
    public func confirmTOTP(_ code: String, _ token: Token) async throws(APIError) -> [String] {
        struct Body: Encodable { let totp: String }
        let request = try Self.request(.post, "/v1/account/totp/confirm", token: token, Body(totp: code))
        return try await call(request, as: Codes.self).recoveryCodes
    }

    /// Replaces the unused recovery codes (`POST /v1/account/totp/recovery-codes`).
    /// - Returns: Ten new recovery codes.
    public func renewRecoveryCodes(currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) -> [String] {
        let request = try Self.request(
            .post, "/v1/account/totp/recovery-codes", token: token, Proof(currentPasswordKey: currentPasswordKey))
        return try await call(request, as: Codes.self).recoveryCodes
    }

    /// Removes the second factor (`DELETE /v1/account/totp`).
    public func endTOTP(currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) {
        try await call(
            Self.request(.delete, "/v1/account/totp", token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }
}
