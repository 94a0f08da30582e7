public import HTTPCore
public import WebAuthn

/// The operator's settings of the service. ``findings`` checks them together before the start.
public struct ServiceConfiguration: Sendable {
    /// The service's name for clients.
    public var name: String
    /// The version that `GET /v1/service` returns. Nil omits it.
    public var version: String?
    /// The installation's part of every salt. It is fixed for the life of the database.
    public var saltPrefix: String
    public var kdf: KDFPolicy
    public var registration: RegistrationMode
    public var sessions: SessionPolicy
    public var items: ItemPolicy
    public var shares: SharePolicy
    public var purge: PurgePolicy
    /// Rate limits of a client address.
    public var rateLimits: RateLimits
    /// The proxies whose `X-Forwarded-For` is accepted.
    public var trustedProxies: TrustedProxies
    /// The operator's apps that open links to shares.
    public var appLinks: AppLinks
    /// Identity tokens for the operator's services.
    public var tokens: TokenPolicy
    /// Web pages that may use the API.
    public var origins: WebOrigins
    /// The id and the origins of passkeys. Nil accepts none.
    public var passkeys: RelyingParty?
    public var pins: PinSet
    /// Seals the secrets in the database.
    public var masterKey: MasterKey
    /// The value of `Strict-Transport-Security` in replies to requests with a domain name as host. Nil omits the field.
    public var strictTransportSecurity: String?

    public init(
        name: String, version: String? = nil, saltPrefix: String, masterKey: MasterKey, kdf: KDFPolicy = KDFPolicy(),
        registration: RegistrationMode = .open, sessions: SessionPolicy = SessionPolicy(),
        items: ItemPolicy = ItemPolicy(), shares: SharePolicy = SharePolicy(), purge: PurgePolicy = PurgePolicy(),
        rateLimits: RateLimits = .standard, trustedProxies: TrustedProxies = TrustedProxies(),
        appLinks: AppLinks = AppLinks(), tokens: TokenPolicy = TokenPolicy(),
        origins: WebOrigins = WebOrigins(), passkeys: RelyingParty? = nil, pins: PinSet = PinSet(),
        strictTransportSecurity: String? = "max-age=31536000"
    ) {
        self.name = name
        self.version = version
        self.saltPrefix = saltPrefix
        self.masterKey = masterKey
        self.kdf = kdf
        self.registration = registration
        self.sessions = sessions
        self.items = items
        self.shares = shares
        self.purge = purge
        self.rateLimits = rateLimits
        self.trustedProxies = trustedProxies
        self.appLinks = appLinks
        self.tokens = tokens
        self.origins = origins
        self.passkeys = passkeys
        self.pins = pins
        self.strictTransportSecurity = strictTransportSecurity
    }

    /// Maximum length of ``name`` in bytes.
    public static let nameLimit = 128

    /// Returns true if the text is a valid ``saltPrefix``.
    public static func isSaltPrefix(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && !text.utf8.contains { $0 < 0x21 || $0 == 0x7F }
    }

    /// All errors, one sentence each. Empty if the service can start.
    public var findings: [String] {
        var findings: [String] = []
        if !(1...Self.nameLimit).contains(name.utf8.count) {
            findings.append("The service's name must have 1 to \(Self.nameLimit) bytes.")
        }
        if !Self.isSaltPrefix(saltPrefix) {
            findings.append("The salt prefix must have 1 to 255 bytes without spaces and control characters.")
        }
        return findings + kdf.findings + sessions.findings + items.findings + shares.findings + purge.findings
            + rateLimits.findings
    }
}

/// The pins that clients receive: SHA-256 of each SubjectPublicKeyInfo, as `sha256//` and base64.
public struct PinSet: Sendable, Equatable {
    public var active: [String]
    public var backup: [String]

    public init(active: [String] = [], backup: [String] = []) {
        self.active = active
        self.backup = backup
    }
}
