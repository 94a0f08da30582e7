/// State that the loops of a node share. Most of it limits callers without authentication.
public struct NodeState: Sendable {
    /// Rate limits of client addresses.
    public let addresses: RateLimiter
    /// Queues of attempts at the same failure counter.
    public let counterQueue: CounterQueue
    /// Readiness of the database.
    let readiness: Readiness
    /// Running checks of secrets.
    public let checks: ActiveSecretChecks
    /// Log-ins since the last count of an account's sessions.
    let sessions: SessionTally
    /// Sessions whose requests may queue for their account.
    let knownSessions = KnownSessions()
    /// Admission of requests about vaults.
    let vaults: VaultDoor
    /// Running exports.
    let exports = RunningExports()

    /// - Parameters:
    ///   - limits: Rate limits of addresses.
    ///   - sessions: Decides the log-ins at which an account's sessions are counted.
    ///   - readinessDeadline: The time limit of the query for readiness.
    ///   - time: The time since any fixed moment. Nil for the system's.
    public init(
        _ limits: RateLimits, sessions: SessionTally = SessionTally(), readinessDeadline: Duration = .seconds(2),
        time: (@Sendable () -> Duration)? = nil
    ) {
        addresses = RateLimiter(limits, time: time)
        counterQueue = CounterQueue()
        let start = ContinuousClock.now
        let time = time ?? { ContinuousClock.now - start }
        readiness = Readiness(deadline: readinessDeadline, time: time)
        vaults = VaultDoor(time: time)
        checks = ActiveSecretChecks()
        self.sessions = sessions
    }
}
