/// The name and the token of a device, sent with a log-in.
public struct DeviceClaim: Encodable, Sendable {
    /// The name that the list of sessions shows; nil for none.
    public var name: String?
    /// The device token from the last log-in. With it, failed attempts of other devices do not delay this one.
    public var token: Token?

    /// Creates a claim. Without a token the server counts failed attempts as those of an unknown device.
    public init(name: String? = nil, token: Token? = nil) {
        self.name = name
        self.token = token
    }
}

extension SalternAPI {
    private struct KDF: Encodable { let iterations: Int }
    private struct Name: Encodable { let name: String }

    /// Registers an account (`POST /v1/accounts`).
    public func register(
        userid: String, passwordKey: SecretBytes, iterations: Int, keyring: [UInt8]?, deviceName: String? = nil,
        invite: Token? = nil
    ) async throws(APIError) -> RegistrationReply {
        struct Body: Encodable {
            let userid: String
            let passwordKey: SecretBytes
            let kdf: KDF
            let keyring: Base64Bytes?
            let device: Name?
            let invite: Token?
        }
        let body = Body(
            userid: userid, passwordKey: passwordKey, kdf: KDF(iterations: iterations),
            keyring: keyring.map(Base64Bytes.init), device: deviceName.map(Name.init), invite: invite)
        return try await call(Self.request(.post, "/v1/accounts", body))
    }

    /// Logs in (`POST /v1/sessions`).
    /// - Parameter code: Six digits or a recovery code, for an account with a second factor.
    public func logIn(
        userid: String, passwordKey: SecretBytes, device: DeviceClaim? = nil, code: String? = nil
    ) async throws(APIError) -> LoginReply {
        struct Body: Encodable {
            let userid: String
            let passwordKey: SecretBytes
            let device: DeviceClaim?
            let totp: String?
        }
        let body = Body(userid: userid, passwordKey: passwordKey, device: device, totp: code)
        return try await call(Self.request(.post, "/v1/sessions", body))
    }

    /// Lists the account's sessions (`GET /v1/sessions`).
    public func listSessions(_ token: Token) async throws(APIError) -> [SessionDescription] {
        struct Reply: Decodable { let sessions: [SessionDescription] }
        let request = HTTPRequest(.get, "/v1/sessions", token: token.text, replyLimit: Self.longReplyLimit)
        return try await call(request, as: Reply.self).sessions
    }

    /// Ends all other sessions (`DELETE /v1/sessions`).
    /// - Returns: The number of ended sessions, and the new device token if the server renews it.
    public func endOtherSessions(_ token: Token) async throws(APIError) -> (ended: Int, deviceToken: Token?) {
        struct Reply: HoldsTokens {
            let ended: Int
            let deviceToken: Token?
        }
        let reply = try await call(HTTPRequest(.delete, "/v1/sessions", token: token.text), as: Reply.self)
        return (reply.ended, reply.deviceToken)
    }

    /// Ends this session (`DELETE /v1/sessions/current`).
    public func endCurrentSession(_ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, "/v1/sessions/current", token: token.text))
    }

    /// Ends a session of the account (`DELETE /v1/sessions/{id}`).
    public func endSession(_ id: SessionID, _ token: Token) async throws(APIError) {
        try await call(HTTPRequest(.delete, "/v1/sessions/\(id)", token: token.text))
    }

    /// Opens a restricted session by the recovery code (`POST /v1/recoveries`).
    public func recover(
        userid: String, recoveryKey: SecretBytes, deviceName: String? = nil
    ) async throws(APIError) -> RecoveryReply {
        struct Body: Encodable {
            let userid: String
            let recoveryKey: SecretBytes
            let device: Name?
        }
        let body = Body(userid: userid, recoveryKey: recoveryKey, device: deviceName.map(Name.init))
        return try await call(Self.request(.post, "/v1/recoveries", body))
    }
}
