public import HTTPCore

/// What an operator decides about the service. Checked as a whole by ``findings`` before anything starts.
public struct ServiceConfiguration: Sendable {
    /// What the service calls itself to clients.
    public var name: String
    /// The version that `GET /v1/service` tells, or nil to tell none.
    public var version: String?
    /// The site's part of every salt; fixed for the life of the database.
    public var saltPrefix: String
    public var kdf: KDFPolicy
    public var registration: RegistrationMode
    public var sessions: SessionPolicy
    public var items: ItemPolicy
    public var shares: SharePolicy
    public var purge: PurgePolicy
    /// How often one client address may do what.
    public var rateLimits: RateLimits
    /// Whose `X-Forwarded-For` counts.
    public var trustedProxies: TrustedProxies
    /// The operator's apps that open links to shares.
    public var appLinks: AppLinks
    public var pins: PinSet
    /// Seals what the database must keep secret.
    public var masterKey: MasterKey
    /// The value of `Strict-Transport-Security` in replies to requests that name the host by a domain name; nil to send
    /// none.
    public var strictTransportSecurity: String?

    public init(
        name: String, version: String? = nil, saltPrefix: String, masterKey: MasterKey, kdf: KDFPolicy = KDFPolicy(),
        registration: RegistrationMode = .open, sessions: SessionPolicy = SessionPolicy(),
        items: ItemPolicy = ItemPolicy(), shares: SharePolicy = SharePolicy(), purge: PurgePolicy = PurgePolicy(),
        rateLimits: RateLimits = .standard, trustedProxies: TrustedProxies = TrustedProxies(),
        appLinks: AppLinks = AppLinks(), pins: PinSet = PinSet(),
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
        self.pins = pins
        self.strictTransportSecurity = strictTransportSecurity
    }

    /// How many bytes a ``name`` may have.
    public static let nameLimit = 128

    /// Whether this can be a ``saltPrefix``.
    public static func isSaltPrefix(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && !text.utf8.contains { $0 < 0x21 || $0 == 0x7F }
    }

    /// Everything that is wrong, a sentence each; empty when the service can start.
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

/// Which certificates clients should expect: SHA-256 of each SubjectPublicKeyInfo, as `sha256//` and base64.
public struct PinSet: Sendable, Equatable {
    public var active: [String]
    public var backup: [String]

    public init(active: [String] = [], backup: [String] = []) {
        self.active = active
        self.backup = backup
    }
}
