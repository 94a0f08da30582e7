/// A request that accepts an assertion in place of the password key.
public enum PasskeyPurpose: String, Encodable, Sendable, CaseIterable {
    case changeCredential
    case changeUserid
    case deleteAccount
    case exportAccount
    case beginTOTP
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
