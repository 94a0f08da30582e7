/// A request that accepts an assertion in place of the password key.
public enum PasskeyPurpose: String, Encodable, Sendable, CaseIterable {
    /// A change of the password key.
    case changeCredential
    /// A change of the userid.
    case changeUserid
    /// The deletion of the account.
    case deleteAccount
    /// An export of the account.
    case exportAccount
    /// The registration of an authenticator app.
    case beginTOTP
    /// New recovery codes of the second factor.
    case renewRecoveryCodes
}

extension SalternAPI {
    /// `POST /v1/account/passkeys/options`
    /// - Parameter bodySHA256: SHA-256 of the body of the request that the assertion is for.
    public func beginPasskeyAssertion(
        for purpose: PasskeyPurpose, bodySHA256: [UInt8], _ token: Token
    ) async throws(APIError) -> PasskeyRequestOptions {
        struct Body: Encodable {
            let purpose: PasskeyPurpose
            let bodySHA256: Base64Bytes
        }
        struct Reply: Decodable { let publicKey: PasskeyRequestOptions }
        let body = Body(purpose: purpose, bodySHA256: Base64Bytes(bodySHA256))
        let request = try Self.request(.post, "/v1/account/passkeys/options", token: token, body)
        return try await call(request, as: Reply.self).publicKey
    }
}
