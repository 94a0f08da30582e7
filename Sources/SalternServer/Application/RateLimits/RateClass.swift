/// What a client address may do how often: each class of routes has a bucket of its own.
public enum RateClass: String, Sendable, CaseIterable {
    /// Log-ins and recoveries.
    case login
    /// Registrations and changes of the userid, which say whether a userid is taken.
    case registration
    /// KDF parameters of a userid.
    case lookup
    /// Whatever needs a session.
    case account
    /// Shares, for anybody with the link.
    case share
    /// Shares that were not there: walking through ids.
    case shareMiss = "share-miss"
    /// Shares that are made without an account.
    case anonymousShare = "anonymous-share"
}

/// A token bucket: how many requests may come at once, and how many a second in the long run.
public struct RateLimit: Sendable, Equatable {
    public var burst: Int
    public var perSecond: Double

    public init(burst: Int, perSecond: Double) {
        self.burst = burst
        self.perSecond = perSecond
    }
}
