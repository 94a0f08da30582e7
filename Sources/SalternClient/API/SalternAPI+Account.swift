internal import Cryptography

/// A new password key, with its iterations and keyrings.
public struct NewCredential: Sendable {
    /// The key for the server; see ``StretchedPassword/passwordKey``.
    public var passwordKey: SecretBytes
    /// The iterations by which the key was derived.
    public var iterations: Int
    /// The keyring, sealed under the new password; nil for an account without one.
    public var keyring: [UInt8]?
    /// The revision of the keyring that the new one replaces.
    public var keyringRevision: Revision?
    /// The new keyring for the recovery code, when data keys change; nil otherwise.
    public var recoveryKeyring: [UInt8]?

    /// Creates a credential. The server replaces the password key and the keyrings in one transaction.
    public init(
        passwordKey: SecretBytes, iterations: Int, keyring: [UInt8]?, keyringRevision: Revision?,
        recoveryKeyring: [UInt8]? = nil
    ) {
        self.passwordKey = passwordKey
        self.iterations = iterations
        self.keyring = keyring
        self.keyringRevision = keyringRevision
        self.recoveryKeyring = recoveryKeyring
    }
}

extension SalternAPI {
    struct Proof: Encodable { let currentPasswordKey: SecretBytes }

    struct CredentialBody: Encodable {
        struct KDF: Encodable { let iterations: Int }
        var currentPasswordKey: SecretBytes?
        var userid: String?
        let passwordKey: SecretBytes
        let kdf: KDF
        let keyring: Base64Bytes?
        let keyringRevision: Revision?
        let recoveryKeyring: Base64Bytes?

        init(_ new: NewCredential, current: SecretBytes?, userid: String? = nil) {
            currentPasswordKey = current
            self.userid = userid
            passwordKey = new.passwordKey
            kdf = KDF(iterations: new.iterations)
            keyring = new.keyring.map(Base64Bytes.init)
            keyringRevision = new.keyringRevision
            recoveryKeyring = new.recoveryKeyring.map(Base64Bytes.init)
        }
    }

    /// Returns the account with its plan, limits and usage (`GET /v1/account`).
    public func getAccount(_ token: Token) async throws(APIError) -> AccountDescription {
        try await call(HTTPRequest(.get, "/v1/account", token: token.text))
    }

    /// Deletes the account (`DELETE /v1/account`).
    public func deleteAccount(currentPasswordKey: SecretBytes, _ token: Token) async throws(APIError) {
        try await call(
            Self.request(.delete, "/v1/account", token: token, Proof(currentPasswordKey: currentPasswordKey)))
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
