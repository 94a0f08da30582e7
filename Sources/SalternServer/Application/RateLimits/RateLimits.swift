internal import HTTPCore

/// The rate limits of a client address. A class without an entry is unlimited.
public struct RateLimits: Sendable, Equatable {
    public var limits: [RateClass: RateLimit]

    public init(_ limits: [RateClass: RateLimit]) {
        self.limits = limits
    }

    /// High limits, because many people share an address, and because the delay of each userid is the defence against
    /// guessing.
    public static let standard = RateLimits([
        .login: RateLimit(burst: 300, perSecond: 10),
        .registration: RateLimit(burst: 300, perSecond: 2),
        .lookup: RateLimit(burst: 1_000, perSecond: 50),
        .account: RateLimit(burst: 5_000, perSecond: 1_000),
        .share: RateLimit(burst: 500, perSecond: 20),
        .shareMiss: RateLimit(burst: 60, perSecond: 0.5),
        .anonymousShare: RateLimit(burst: 10, perSecond: 0.01),
        .token: RateLimit(burst: 500, perSecond: 20),
        .service: RateLimit(burst: 5_000, perSecond: 1_000),
    ])

    /// No limits, for benchmarks.
    public static let off = RateLimits([:])

    /// Reads `on`, `off`, or values that replace those of ``standard``. `login=20/5,registration=10/0.5` allows a burst
    /// of 20 log-ins and 5 a second, and a burst of 10 registrations and one every two seconds.
    ///
    /// Nil for other text: a repeated or unknown class, a burst outside 1 to 1,000,000, or a rate that is not a decimal
    /// number from 0.01 to 1,000,000.
    public init?(_ text: String) {
        switch text {
        case "on": self = .standard
        case "off": self = .off
        default:
            self = .standard
            var named: Set<RateClass> = []
            for entry in text.split(separator: ",", omittingEmptySubsequences: false) {
                let parts = entry.drop { $0 == " " }.split(separator: "=", omittingEmptySubsequences: false)
                guard parts.count == 2, let rateClass = RateClass(rawValue: String(parts[0])),
                    let limit = RateLimit(parts[1]), named.insert(rateClass).inserted
                else { return nil }
                limits[rateClass] = limit
            }
        }
    }

    /// The errors in the limits, one sentence each.
    var findings: [String] {
        RateClass.allCases.compactMap { rateClass in
            guard let limit = limits[rateClass], !limit.isInRange else { return nil }
            return
                "The rate limit \(rateClass.rawValue) must have a burst of 1 to 1000000 and 0.01 to 1000000 a second."
        }
    }
}

extension RateLimit {
    fileprivate init?(_ text: Substring) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        // Only plain decimal numbers: `Double` also reads signs, exponents, leading zeros and "nan".
        guard parts.count == 2, let burst: Int = ASCII.wholeNumber(parts[0]),
            parts[1].wholeMatch(of: /(0|[1-9][0-9]*)(\.[0-9]+)?/) != nil, let rate = Double(parts[1])
        else { return nil }
        self.init(burst: burst, perSecond: rate)
        if !isInRange { return nil }
    }

    fileprivate var isInRange: Bool {
        (1...1_000_000).contains(burst) && (0.01...1_000_000).contains(perSecond)
    }
}

/// A class of routes. Each client address has one bucket for each class.
public enum RateClass: String, Sendable, CaseIterable {
    /// Log-ins and recoveries.
    case login
    /// Registrations and changes of the userid, which reveal if a userid is taken.
    case registration
    /// KDF parameters of a userid.
    case lookup
    /// All routes that need a session.
    case account
    /// Views of shares.
    case share
    /// Requests of shares that do not exist, to limit enumeration of ids.
    case shareMiss = "share-miss"
    /// Shares created without an account.
    case anonymousShare = "anonymous-share"
    /// Identity tokens, which are signed.
    case token
    /// Requests of the operator's services.
    case service
}

/// A token bucket: the number of requests at once, and the average number a second.
public struct RateLimit: Sendable, Equatable {
    public var burst: Int
    public var perSecond: Double

    public init(burst: Int, perSecond: Double) {
        self.burst = burst
        self.perSecond = perSecond
    }
}
