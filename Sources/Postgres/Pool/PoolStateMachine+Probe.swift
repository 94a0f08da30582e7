/// Probes for a takeover while connections to the current server are silent.
///
/// A silent server may be slow, frozen, or gone with its network. Only in the last two cases should its connections be
/// closed. A reply from another server as the primary distinguishes them.
extension PoolStateMachine {
    /// The pause after an unsuccessful probe, and after one that has reached a primary.
    static var probePauses: (afterFailure: Duration, afterSuccess: Duration) { (.milliseconds(200), .seconds(1)) }

    /// Opens the probe connection, unless it is open or was just now.
    mutating func probeOtherHost() -> Action? {
        let slot = range(.probe).lowerBound
        guard !isShutDown, case .absent = slots[slot].phase else { return nil }
        return connect(slot)
    }

    /// Retries immediately on all slots that wait to connect, because a server has replied.
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
