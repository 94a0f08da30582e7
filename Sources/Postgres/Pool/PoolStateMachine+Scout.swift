/// Looking whether another server has taken over, while connections to the one that is known are silent.
///
/// A server that does not answer may be slow, frozen, or gone with its network, and only in the last two cases is it right
/// to give its connections up. That another one answers as the primary tells them apart.
extension PoolStateMachine {
    /// Between a look that led nowhere and the next; and after one that has reached a primary.
    static var scoutPauses: (afterFailure: Duration, afterSuccess: Duration) { (.milliseconds(200), .seconds(1)) }

    /// Opens the connection that looks, unless it is open or was just now.
    mutating func scout() -> Action? {
        let slot = range(.scout).lowerBound
        guard !isShutDown, case .absent = slots[slot].phase else { return nil }
        return connect(slot)
    }

    /// A server is known to answer: whoever waits to connect does so now.
    mutating func hurry() -> [Action] {
        var actions: [Action] = []
        for index in 0..<range(.scout).lowerBound {
            guard case .waitingToConnect = slots[index].phase else { continue }
            slots[index].failures = 0
            if slots[index].lane == .leases {
                slots[index].phase = .absent
            } else {
                actions.append(connect(index))
            }
        }
        return actions + serveLeaseWaiters()
    }

    mutating func scoutEnded(failed: Bool, now: Instant) -> [Action] {
        let pause = failed ? Self.scoutPauses.afterFailure : Self.scoutPauses.afterSuccess
        slots[range(.scout).lowerBound].phase = .waitingToConnect(until: now + pause)
        return []
    }
}
