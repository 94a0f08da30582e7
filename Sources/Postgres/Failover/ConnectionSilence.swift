/// Judges the silence of one connection: the time since its server's last reply, while a reply is pending.
///
/// Pure: the connection passes the time and its activity in and performs the verdict.
struct ConnectionSilence {
    typealias Instant = ContinuousClock.Instant

    /// The limits of a connection's silence.
    struct Limits {
        /// Before other servers are probed; see ``PostgresConfiguration/takeoverPatience``.
        var takeover: Duration
        /// During a commit, before further writes are rejected.
        var commit: Duration
        /// With a pending reply, before the connection is given up.
        var reply: Duration
    }

    /// The state of a connection, as far as its silence has a meaning.
    enum Activity {
        case opening
        /// No reply is pending.
        case idle
        case waiting(isCommitting: Bool)
        case closed
    }

    /// The consequence of a silence.
    enum Verdict {
        case none
        /// Close the connection and demote its server: opening it takes too long.
        case openingTimedOut
        /// Close the connection.
        case lost
        /// Close the connection. Its server process may still be working.
        case givenUp
        /// Reject writes: a commit does not end.
        case stalled
    }

    /// The consequence of another server's takeover.
    enum Supersession {
        case none
        /// Close the connection after a silent opening.
        case openingTimedOut
        /// Close the connection, which leads to the former primary. It has no request.
        case close
        /// Close the connection after its pending requests, within a shorter limit of silence.
        case retire
    }

    private let limits: Limits
    private let openingDeadline: Instant
    /// The target of a probe; nil for ordinary connections.
    private let probeTarget: ProbeTarget?
    private var lastReceived: Instant
    /// True if another server has taken over from this one.
    private var isSuperseded = false
    /// True after ``Verdict/stalled``, until the next reply.
    private var isStalled = false

    init(limits: Limits, connectTimeout: Duration, probeTarget: ProbeTarget?, now: Instant) {
        self.limits = limits
        self.probeTarget = probeTarget
        openingDeadline = now + connectTimeout
        lastReceived = now
    }

    /// Begins a new silence: after a reply, or with the first of several pending requests.
    mutating func restart(_ now: Instant) { lastReceived = now }

    /// Ends a stall, because the server has replied.
    /// - Returns: False if there was none.
    mutating func endStall() -> Bool {
        defer { isStalled = false }
        return isStalled
    }

    /// Returns true if a reply has been pending for long enough to probe for another primary.
    /// - Parameter serverCount: The number of servers; 0 before their names are resolved.
    func isSilent(_ activity: Activity, serverCount: Int, now: Instant) -> Bool {
        switch activity {
        case .closed, .idle: false
        case .opening, .waiting: now >= lastReceived + patience(serverCount)
        }
    }

    private func patience(_ serverCount: Int) -> Duration {
        // A server that still runs replies soon. Its silent connections have had the whole time.
        if isSuperseded { return limits.takeover / 4 }
        return probeTarget?.isShort(among: serverCount) == true ? limits.takeover / 4 : limits.takeover
    }

    /// Judges the silence until now. A stall is returned once.
    mutating func check(_ activity: Activity, serverCount: Int, now: Instant) -> Verdict {
        let isProbe = probeTarget != nil
        let isSilent = isSilent(activity, serverCount: serverCount, now: now)
        switch activity {
        case .opening: return now >= openingDeadline || isProbe && isSilent ? .openingTimedOut : .none
        case .waiting(let isCommitting):
            if isProbe && now >= openingDeadline || (isProbe || isSuperseded) && isSilent { return .lost }
            if now >= lastReceived + limits.reply { return .givenUp }
            guard isCommitting, !isStalled, now >= lastReceived + limits.commit else { return .none }
            isStalled = true
            return .stalled
        case .idle, .closed: return .none
        }
    }

    /// Handles the takeover of another server.
    /// - Parameter leadsElsewhere: True if the connection was started at another server than new ones.
    mutating func supersede(
        _ activity: Activity, leadsElsewhere: Bool, serverCount: Int, now: Instant
    ) -> Supersession {
        switch activity {
        case .opening:
            if isSilent(activity, serverCount: serverCount, now: now) { return .openingTimedOut }
            // It was started just before the takeover. Closing it loses nothing, and avoids the wait for its silence.
            return leadsElsewhere ? .close : .none
        case .idle, .waiting:
            isSuperseded = true
            return .retire
        case .closed: return .none
        }
    }
}
