/// What the loops of a node share to bound what anybody can do.
public struct NodeState: Sendable {
    /// Requests of client addresses.
    public let addresses: RateLimiter
    /// Attempts that wait for others at the same counter.
    public let counterQueue: CounterQueue
    /// Questions whether the database is ready.
    let readiness: Readiness
    /// Looks at secrets.
    public let checks: ActiveSecretChecks
    /// Log-ins that have not counted the account's sessions.
    let sessions: SessionTally
    /// Sessions whose requests may wait for their account.
    let knownSessions = KnownSessions()
    /// Exports under way.
    let exports = RunningExports()

    /// - Parameters:
    ///   - limits: What addresses may do.
    ///   - sessions: What decides at which log-ins an account's sessions are counted.
    ///   - time: The time since any fixed moment; the system's when nil.
    public init(
        _ limits: RateLimits, sessions: SessionTally = SessionTally(), time: (@Sendable () -> Duration)? = nil
    ) {
        addresses = RateLimiter(limits, time: time)
        counterQueue = CounterQueue()
        let start = ContinuousClock.now
        readiness = Readiness(time: time ?? { ContinuousClock.now - start })
        checks = ActiveSecretChecks()
        self.sessions = sessions
    }
}
