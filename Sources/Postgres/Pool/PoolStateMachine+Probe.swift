/// Looking whether another server has taken over, while connections to the one that is known are silent.
///
/// A server that does not answer may be slow, frozen, or gone with its network, and only in the last two cases is it right
/// to give its connections up. That another one answers as the primary tells them apart.
extension PoolStateMachine {
    /// Between a look that led nowhere and the next; and after one that has reached a primary.
    static var probePauses: (afterFailure: Duration, afterSuccess: Duration) { (.milliseconds(200), .seconds(1)) }

    /// Opens the connection that looks, unless it is open or was just now.
    mutating func probeOtherHost() -> Action? {
        let slot = range(.probe).lowerBound
        guard !isShutDown, case .absent = slots[slot].phase else { return nil }
        return connect(slot)
    }

    /// A server is known to answer: whoever waits to connect does so now.
    mutating func retryImmediately() -> [Action] {
        var actions: [Action] = []
        for index in 0..<range(.probe).lowerBound {
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

    mutating func probeEnded(failed: Bool, now: Instant) -> [Action] {
        let pause = failed ? Self.probePauses.afterFailure : Self.probePauses.afterSuccess
        slots[range(.probe).lowerBound].phase = .waitingToConnect(until: now + pause)
        return []
    }
}
