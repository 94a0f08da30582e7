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
