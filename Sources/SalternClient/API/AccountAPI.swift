internal import Cryptography
internal import Foundation

extension SalternAPI {
    struct Proof: Encodable { let currentPasswordKey: SecretBytes }

    struct Deletion: Encodable {
        let currentPasswordKey: SecretBytes
        /// `delete` to delete the account's own shared vaults, too.
        let vaults: String?
    }

    struct CredentialBody: Encodable {
        struct KDF: Encodable { let iterations: Int }
        var currentPasswordKey: SecretBytes?
        var userid: String?
        let passwordKey: SecretBytes
        let kdf: KDF
        let keyring: Base64Bytes?
        let keyringRevision: Revision?
        let recoveryKeyring: Base64Bytes?
        let passkeyBoxes: [PasskeyBox]?

        init(_ new: NewCredential, current: SecretBytes?, userid: String? = nil) {
            currentPasswordKey = current
            self.userid = userid
            passwordKey = new.passwordKey
            kdf = KDF(iterations: new.iterations)
            keyring = new.keyring.map(Base64Bytes.init)
            keyringRevision = new.keyringRevision
            recoveryKeyring = new.recoveryKeyring.map(Base64Bytes.init)
            passkeyBoxes = new.passkeyBoxes.isEmpty ? nil : new.passkeyBoxes
        }
    }

    /// Returns the account with its plan, limits and usage (`GET /v1/account`).
    public func getAccount(_ token: Token) async throws(APIError) -> AccountDescription {
        try await call(HTTPRequest(.get, "/v1/account", token: token.text))
    }

    /// Deletes the account (`DELETE /v1/account`).
    public func deleteAccount(
        currentPasswordKey: SecretBytes, deletingVaults: Bool = false, _ token: Token
    ) async throws(APIError) {
        let body = Deletion(currentPasswordKey: currentPasswordKey, vaults: deletingVaults ? "delete" : nil)
        try await call(Self.request(.delete, "/v1/account", token: token, body))
    }

    /// Sets a new password key and keyring (`PUT /v1/account/credential`).
    /// - Parameter current: The present password key; nil for the session of a recovery.
    public func changeCredential(
        _ new: NewCredential, current: SecretBytes?, _ token: Token
    ) async throws(APIError) -> CredentialReply {
        try await call(
            Self.request(.put, "/v1/account/credential", token: token, CredentialBody(new, current: current)))
    }

    /// Sets a new userid, password key and keyring (`PUT /v1/account/userid`).
    public func changeUserid(
        _ userid: String, _ new: NewCredential, current: SecretBytes, _ token: Token
    ) async throws(APIError) -> CredentialReply {
        try await call(
            Self.request(
                .put, "/v1/account/userid", token: token, CredentialBody(new, current: current, userid: userid)))
    }

    /// Returns the keyring and its revision (`GET /v1/account/keyring`).
    /// - Returns: nil when there is none.
    public func getKeyring(_ token: Token) async throws(APIError) -> KeyringReply? {
        do {
            return try await call(HTTPRequest(.get, "/v1/account/keyring", token: token.text))
        } catch .problem(let problem) where problem.status == 404 {
            return nil
        }
    }

    /// Lists the kept keyrings (`GET /v1/account/keyring/kept`).
    /// - Returns: The keyrings in the order in which they were replaced. The list is empty when the server keeps none
    ///   or has no such route.
    public func listKeptKeyrings(_ token: Token) async throws(APIError) -> [KeptKeyring] {
        struct Reply: Decodable { let keyrings: [KeptKeyring] }
        let request = HTTPRequest(.get, "/v1/account/keyring/kept", token: token.text)
        do {
            return try await call(request, as: Reply.self).keyrings
        } catch .problem(let problem) where problem.status == 404 {
            return []
        }
    }

    /// Replaces the keyring (`PUT /v1/account/keyring`).
    /// - Parameters:
    ///   - recoveryKeyring: The new keyring for the recovery code.
    ///   - removingRecovery: The present password key, to remove the recovery code. Mutually exclusive with
    ///     `recoveryKeyring`.
    ///   - currentPasswordKey: The present password key. With it, the replaced keyring does not count towards the limit
    ///     of keyrings that a session alone replaces.
    /// - Returns: The keyring's new revision.
    public func putKeyring(
        _ keyring: [UInt8], recoveryKeyring: [UInt8]? = nil, removingRecovery: SecretBytes? = nil,
        currentPasswordKey: SecretBytes? = nil, _ precondition: Precondition, _ token: Token
    ) async throws(APIError) -> Revision {
        struct Body: Encodable {
            let keyring: Base64Bytes
            let recoveryKeyring: Base64Bytes?
            let removeRecovery: Bool?
            let currentPasswordKey: SecretBytes?
        }
        struct Reply: Decodable { let revision: Revision }
        let body = Body(
            keyring: Base64Bytes(keyring), recoveryKeyring: recoveryKeyring.map(Base64Bytes.init),
            removeRecovery: removingRecovery == nil ? nil : true,
            currentPasswordKey: removingRecovery ?? currentPasswordKey)
        let request = try Self.request(
            .put, "/v1/account/keyring", token: token, fields: [precondition.field], body)
        return try await call(request, as: Reply.self).revision
    }

    /// Stores a purchase receipt (`PUT /v1/account/receipt`).
    public func putReceipt(_ receipt: String, _ token: Token) async throws(APIError) {
        struct Body: Encodable { let receipt: String }
        try await call(Self.request(.put, "/v1/account/receipt", token: token, Body(receipt: receipt)))
    }

    /// Returns all data of the account on the server as NDJSON (`POST /v1/account/export`).
    public func exportAccount(
        currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) -> HTTPReplyStream {
        try await stream(
            Self.request(.post, "/v1/account/export", token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }

    /// Returns a page of the security log (`GET /v1/account/events`).
    public func listEvents(
        page: String? = nil, limit: Int? = nil, _ token: Token
    ) async throws(APIError) -> SecurityLogPage {
        let target = Self.target("/v1/account/events", [("limit", limit.map(String.init)), ("page", page)])
        return try await call(HTTPRequest(.get, target, token: token.text))
    }

    /// Sets the recovery code (`PUT /v1/account/recovery`).
    /// - Parameters:
    ///   - keyring: The keyring that the code opens.
    ///   - accountKeyring: The account's own keyring, which contains the code's public key, and the revision that it
    ///     replaces in the same transaction. Required when the account has a keyring and `keyring` contains its data
    ///     keys.
    /// - Returns: The revision of the account's keyring; nil when there is none.
    @discardableResult
    public func setRecovery(
        recoveryKey: SecretBytes, keyring: [UInt8]?, accountKeyring: (sealed: [UInt8], replacing: Revision)? = nil,
        currentPasswordKey: SecretBytes, _ token: Token
    ) async throws(APIError) -> Revision? {
        struct Body: Encodable {
            let currentPasswordKey: SecretBytes
            let recoveryKey: SecretBytes
            let keyring: Base64Bytes?
            let accountKeyring: Base64Bytes?
            let accountKeyringRevision: Revision?
        }
        struct Reply: Decodable { let keyringRevision: Revision? }
        let body = Body(
            currentPasswordKey: currentPasswordKey, recoveryKey: recoveryKey, keyring: keyring.map(Base64Bytes.init),
            accountKeyring: accountKeyring.map { Base64Bytes($0.sealed) },
            accountKeyringRevision: accountKeyring?.replacing)
        let request = try Self.request(.put, "/v1/account/recovery", token: token, body)
        return try await call(request, as: Reply.self).keyringRevision
    }

    /// Removes the recovery code (`DELETE /v1/account/recovery`).
    public func removeRecovery(currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) {
        try await call(
            Self.request(.delete, "/v1/account/recovery", token: token, Proof(currentPasswordKey: currentPasswordKey)))
    }
}

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

extension SalternAPI {
    /// Returns the server's description of itself (`GET /v1/service`).
    public func describeService() async throws(APIError) -> ServiceDescription {
        try await call(HTTPRequest(.get, "/v1/service"))
    }

    /// Checks that the server's process is running (`GET /v1/health/live`).
    public func checkLiveness() async throws(APIError) {
        try await call(HTTPRequest(.get, "/v1/health/live"))
    }

    /// Checks that the server can serve requests (`GET /v1/health/ready`).
    public func checkReadiness() async throws(APIError) {
        try await call(HTTPRequest(.get, "/v1/health/ready"))
    }

    /// Returns the KDF parameters of a userid, even of an unknown one (`POST /v1/kdf`).
    public func getKDFParameters(userid: String) async throws(APIError) -> KDFParameters {
        struct Body: Encodable { let userid: String }
        return try await call(Self.request(.post, "/v1/kdf", Body(userid: userid)))
    }
}

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
    /// - Parameters:
    ///   - code: Six digits or a recovery code, for an account with a second factor.
    ///   - passkey: The answer to ``Problem/publicKey``. Mutually exclusive with `code`.
    public func logIn(
        userid: String, passwordKey: SecretBytes, device: DeviceClaim? = nil, code: String? = nil,
        passkey: PasskeyAssertion? = nil
    ) async throws(APIError) -> LoginReply {
        struct Body: Encodable {
            let userid: String
            let passwordKey: SecretBytes
            let device: DeviceClaim?
            let totp: String?
            let passkey: PasskeyAssertion?
        }
        let body = Body(userid: userid, passwordKey: passwordKey, device: device, totp: code, passkey: passkey)
        return try await call(Self.request(.post, "/v1/sessions", body))
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
