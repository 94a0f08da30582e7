/// What the loops of a node share to slow attackers down.
public struct Throttle: Sendable {
    /// Requests of client addresses.
    public let addresses: RateLimiter
    /// Attempts that wait for others at the same userid, device or session.
    public let turns: AttemptTurns

    /// - Parameters:
    ///   - limits: What addresses may do.
    ///   - time: The time since any fixed moment; the system's when nil.
    public init(_ limits: RateLimits, time: (@Sendable () -> Duration)? = nil) {
        addresses = RateLimiter(limits, time: time)
        turns = AttemptTurns()
    }
}
