/// What the loops of a node share to slow attackers down.
public struct Throttle: Sendable {
    /// Requests of client addresses.
    public let addresses: RateLimiter
    /// Attempts that wait for others at the same counter.
    public let turns: AttemptTurns
    /// Questions whether the database is ready.
    let readiness: Readiness
    /// Looks at secrets.
    public let looks: LooksUnderWay

    /// - Parameters:
    ///   - limits: What addresses may do.
    ///   - time: The time since any fixed moment; the system's when nil.
    public init(_ limits: RateLimits, time: (@Sendable () -> Duration)? = nil) {
        addresses = RateLimiter(limits, time: time)
        turns = AttemptTurns()
        let start = ContinuousClock.now
        readiness = Readiness(time: time ?? { ContinuousClock.now - start })
        looks = LooksUnderWay()
    }
}
