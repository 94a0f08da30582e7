internal import Cryptography
internal import HTTPCore
internal import Postgres

/// The claims of an identity token (RFC 7519, RFC 9068).
struct IdentityToken: Sendable, Equatable {
    var issuer: String
    /// The account's pairwise name.
    var subject: String
    /// The session's pairwise name.
    var session: String
    var audience: AudienceName
    /// Unix seconds.
    var issuedAt: Int64
    /// Unix seconds.
    var expiresAt: Int64
    /// The sealed ``TokenIdentifier``.
    var identifier: String
    var plan: String
    /// Present if the audience receives account identifiers.
    var accountID: AccountID?
    /// Present if the audience receives userids.
    var userid: String?

    /// The claim `client_id`, which RFC 9068 requires. All apps of a server are one client.
    static let clientID = "saltern"

    /// Writes the claims as members.
    func write(to writer: inout JSONWriter) {
        writer.member("iss", issuer)
        writer.member("sub", subject)
        writer.member("aud", audience.description)
        writer.member("client_id", Self.clientID)
        writer.member("iat", issuedAt)
        writer.member("nbf", issuedAt)
        writer.member("exp", expiresAt)
        writer.member("jti", identifier)
        writer.member("sid", session)
        writer.member("plan", plan)
        if let accountID { writer.member("account_id", accountID) }
        if let userid { writer.member("userid", userid) }
    }

    /// Returns the compact form: header, claims and signature in base64url (RFC 7515 §7.1).
    func signed(by key: SigningKey) throws(P256.Failure) -> String {
        var writer = JSONWriter(capacity: 512)
        writer.object { write(to: &$0) }
        let message = key.header + "." + Base64URL.encodeToString(writer.finish())
        return message + "." + Base64URL.encodeToString(try key.key.signature(of: message.utf8))
    }

    /// Reads the claims of a token that one of the keys has signed. Returns nil for anything else. Does not check the
    /// times.
    init?(_ text: String, keys: SigningKeys) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let key = keys.keys.first(where: { $0.header == parts[0] }),
            let signature = try? Base64URL.decode(Array(parts[2].utf8)),
            key.key.isValid(signature, of: Array((parts[0] + "." + parts[1]).utf8)),
            let payload = try? Base64URL.decode(Array(parts[1].utf8)),
            let claims = try? JSONParser().parse(payload), let token = try? IdentityToken(claims: claims)
        else { return nil }
        self = token
    }

    /// Reads claims that this server has signed.
    private init(claims: JSONValue) throws {
        var members = try JSONMembers(claims)
        issuer = try members.string("iss")
        subject = try members.string("sub")
        guard let audience = AudienceName(try members.string("aud")) else { throw Problem.notFound }
        self.audience = audience
        issuedAt = try members.required("iat") { try $0.integer() }
        expiresAt = try members.required("exp") { try $0.integer() }
        identifier = try members.string("jti")
        session = try members.string("sid")
        plan = try members.string("plan")
        accountID = try members.optional("account_id") { AccountID(pathParameter: try $0.string()) } ?? nil
        userid = try members.optional("userid") { try $0.string() }
    }

    init(
        issuer: String, subject: String, session: String, audience: AudienceName, issuedAt: Int64, expiresAt: Int64,
        identifier: String, plan: String, accountID: AccountID? = nil, userid: String? = nil
    ) {
        self.issuer = issuer
        self.subject = subject
        self.session = session
        self.audience = audience
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.identifier = identifier
        self.plan = plan
        self.accountID = accountID
        self.userid = userid
    }
}

/// Identifies the account and the session of a token, sealed for the server alone: the claim `jti`.
///
/// An inspection opens it, so the server stores nothing for a token. The pairwise key never changes, and AES-GCM allows
/// about 2^32 random nonces under one key. So each identifier has its own key, derived from 12 random bytes in front of
/// it.
struct TokenIdentifier: Equatable {
    let accountID: AccountID
    let sessionID: SessionID

    private static let saltByteCount = 12

    /// 96 characters of base64url.
    func sealed(for audience: AudienceName, with key: PairwiseKey) throws(AESGCM.Failure) -> String {
        let salt = SecureRandom.bytes(Self.saltByteCount)
        let sealed = try AESGCM.seal(
            accountID.uuid.bytes + sessionID.uuid.bytes, using: Self.key(salt, audience, key),
            authenticating: audience.description.utf8)
        return Base64URL.encodeToString(salt + sealed)
    }

    init(accountID: AccountID, sessionID: SessionID) {
        self.accountID = accountID
        self.sessionID = sessionID
    }

    /// Opens the text that ``sealed(for:with:)`` returned for the same audience. Returns nil for anything else.
    init?(_ text: String, for audience: AudienceName, with key: PairwiseKey) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count > Self.saltByteCount,
            let opened = try? AESGCM.open(
                Array(bytes[Self.saltByteCount...]),
                using: Self.key(Array(bytes[..<Self.saltByteCount]), audience, key),
                authenticating: audience.description.utf8)
        else { return nil }
        let ids: (account: UUID, session: UUID)? = opened.withUnsafeBytes { bytes in
            guard bytes.count == 2 * UUID.byteCount,
                let account = UUID(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<UUID.byteCount])),
                let session = UUID(bytes: UnsafeRawBufferPointer(rebasing: bytes[UUID.byteCount...]))
            else { return nil }
            return (account, session)
        }
        guard let ids else { return nil }
        self.init(accountID: AccountID(ids.account), sessionID: SessionID(ids.session))
    }

    private static func key(_ salt: [UInt8], _ audience: AudienceName, _ key: PairwiseKey) -> SecureBytes {
        SecureBytes(copying: key.code(.tokenIdentifier, for: audience, salt))
    }
}
