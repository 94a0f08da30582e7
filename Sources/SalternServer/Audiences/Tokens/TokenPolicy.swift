/// The operator's settings for identity tokens.
public struct TokenPolicy: Sendable {
    /// The server's name in tokens. Nil if it signs none.
    public var issuer: TokenIssuer?
    /// The keys that sign. Present if there is an issuer.
    public var keys: SigningKeys?
    public var audiences: [Audience]
    /// The time from issue to expiry of a token.
    public var lifetime: Duration

    /// The permitted lifetimes.
    public static let lifetimes = Duration.seconds(60) ... .seconds(3_600)
    public static let defaultLifetime = Duration.seconds(300)

    public init(
        issuer: TokenIssuer? = nil, keys: SigningKeys? = nil, audiences: [Audience] = [],
        lifetime: Duration = Self.defaultLifetime
    ) {
        self.issuer = issuer
        self.keys = keys
        self.audiences = audiences
        self.lifetime = lifetime
    }

    /// Returns the audience with a name.
    func audience(_ name: String) -> Audience? { audiences.first { $0.name.description == name } }
}

/// The server's origin in tokens: `https://`, a host in lower case, and a port unless it is 443.
public struct TokenIssuer: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// Reads an origin without a path or a slash at its end, because RFC 8414 compares issuers byte by byte.
    public init?(_ text: String) {
        guard WebOrigin(text) != nil else { return nil }
        description = text
    }
}
