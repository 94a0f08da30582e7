internal import Cryptography

extension SalternAPI {
    private struct Options<Value: Decodable>: Decodable { let publicKey: Value }

    private static func path(_ id: [UInt8]) -> String { "/v1/account/passkeys/" + Base64URL.encodeToString(id) }

    /// `POST /v1/account/passkeys`
    /// - Parameter logsIn: True if the passkey opens sessions without the password key.
    public func beginPasskey(
        logsIn: Bool, currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) -> PasskeyCreationOptions {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            let logsIn: Bool
        }
        let body = Body(currentPasswordKey: currentPasswordKey, logsIn: logsIn)
        let request = try Self.request(.post, "/v1/account/passkeys", token: token, body)
        return try await call(request, as: Options<PasskeyCreationOptions>.self).publicKey
    }

    /// `POST /v1/account/passkeys/confirm`
    public func confirmPasskey(
        _ credential: PasskeyRegistration, name: String, logsIn: Bool, currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) -> PasskeyDescription {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            let credential: PasskeyRegistration
            let name: String
            let logsIn: Bool
        }
        let body = Body(currentPasswordKey: currentPasswordKey, credential: credential, name: name, logsIn: logsIn)
        return try await call(Self.request(.post, "/v1/account/passkeys/confirm", token: token, body))
    }

    /// `GET /v1/account/passkeys`
    public func listPasskeys(_ token: Token) async throws(APIError) -> [PasskeyDescription] {
        struct Reply: Decodable { let passkeys: [PasskeyDescription] }
        let request = HTTPRequest(.get, "/v1/account/passkeys", token: token.text)
        return try await call(request, as: Reply.self).passkeys
    }

    /// `PATCH /v1/account/passkeys/{id}`
    public func renamePasskey(_ id: [UInt8], name: String, _ token: Token) async throws(APIError) -> PasskeyDescription
    {
        struct Body: Encodable { let name: String }
        return try await call(Self.request(.patch, Self.path(id), token: token, Body(name: name)))
    }

    /// `DELETE /v1/account/passkeys/{id}`
    public func removePasskey(_ id: [UInt8], currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) {
        try await call(
            Self.request(.delete, Self.path(id), token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }

    /// `PUT /v1/account/passkeys/{id}/box`
    /// - Parameters:
    ///   - sealedPrivateKey: A private key, sealed under the passkey's PRF output.
    ///   - box: The account's unlock key, sealed to that key.
    public func putPasskeyBox(
        _ id: [UInt8], sealedPrivateKey: [UInt8], box: [UInt8], currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            let sealedPrivateKey: Base64Bytes
            let box: Base64Bytes
        }
        let body = Body(
            currentPasswordKey: currentPasswordKey, sealedPrivateKey: Base64Bytes(sealedPrivateKey),
            box: Base64Bytes(box))
        try await call(Self.request(.put, Self.path(id) + "/box", token: token, body))
    }

    /// `PUT /v1/account/passkeys/{id}/box` without a box: the passkey no longer unlocks the keyring.
    public func removePasskeyBox(
        _ id: [UInt8], currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            // An optional of nil would be omitted.
            let box = Base64Bytes??.some(nil)
        }
        try await call(
            Self.request(
                .put, Self.path(id) + "/box", token: token, Body(currentPasswordKey: currentPasswordKey)))
    }

    /// `POST /v1/passkeys/options`
    public func beginPasskeyLogIn() async throws(APIError) -> PasskeyRequestOptions {
        try await call(HTTPRequest(.post, "/v1/passkeys/options"), as: Options<PasskeyRequestOptions>.self).publicKey
    }

    /// `POST /v1/passkeys/sessions`
    public func logInWithPasskey(
        _ credential: PasskeyAssertion, deviceName: String? = nil
    ) async throws(APIError) -> PasskeyLoginReply {
        struct Name: Encodable { let name: String }
        struct Body: Encodable {
            let credential: PasskeyAssertion
            let device: Name?
        }
        let body = Body(credential: credential, device: deviceName.map(Name.init))
        return try await call(Self.request(.post, "/v1/passkeys/sessions", body))
    }
}
