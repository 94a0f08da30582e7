internal import HTTPCore
internal import Postgres

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

/// Signs and reads tokens. Absent if the server has no issuer.
struct TokenIssuing: Sendable {
    let issuer: TokenIssuer
    let keys: SigningKeys
    private let pairwiseKey: PairwiseKey?

    init?(_ parts: Dependencies) {
        guard let issuer = parts.configuration.tokens.issuer, let keys = parts.configuration.tokens.keys else {
            return nil
        }
        self.issuer = issuer
        self.keys = keys
        pairwiseKey = parts.installation.pairwiseKey
    }

    /// The key of pairwise names.
    func pairwise() throws(TokensUnavailable) -> PairwiseKey {
        guard let pairwiseKey else { throw .pairwiseKey }
        return pairwiseKey
    }
}

/// The reason why a request gets no token.
enum TokenProblem: ProblemConvertible {
    /// The server has no issuer.
    case notOffered
    case unknownAudience

    var problem: Problem {
        switch self {
        case .notOffered:
            Problem(.notFound, "tokens_not_offered", detail: "This server issues no identity tokens.")
        case .unknownAudience:
            Problem(
                .unprocessableContent, "unknown_audience", detail: "This server has no audience of this name.",
                field: "audience")
        }
    }
}

/// Reports that the server cannot sign or inspect tokens until its operator intervenes.
enum TokensUnavailable: OperatorProblem {
    /// No master key opens the pairwise key, or the server could not store one when it started.
    case pairwiseKey
    case signature

    func write(to log: Log, requestID: RequestID) {
        let reason =
            switch self {
            case .pairwiseKey: "the pairwise key cannot be opened with the master key"
            case .signature: "the token cannot be signed"
            }
        log.write(.error, "tokens_unavailable", ["requestId": requestID, "error": OperatorText(reason)])
    }

    var problem: Problem {
        Problem(
            .serviceUnavailable, "tokens_unavailable", detail: "The server cannot issue or inspect tokens now.",
            responseFields: ["Retry-After": "60"])
    }
}
