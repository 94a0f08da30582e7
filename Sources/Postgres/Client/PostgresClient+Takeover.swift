internal import EventLoop

/// When the server is silent, another may have taken over: a standby that was promoted, behind another host of the
/// connection string or behind the same name.
extension PostgresClient {
    /// Looks at one server after the other, for as long as some connection is silent.
    func probeNextHost(now: ContinuousClock.Instant) {
        let isSilent = connections.contains { $0.map { $0.lane != .probe && $0.isSilent(now) } ?? false }
        guard isSilent else {
            probeDistance = 1
            return
        }
        if let action = pool.probeOtherHost() { perform([action]) }
    }

    /// The server after the one that was looked at last.
    func nextProbeTarget() -> ProbeTarget {
        defer { probeDistance += 1 }
        return ProbeTarget(preferred: epoch.preferredServer, distance: probeDistance)
    }

    /// A server has answered. When it is a primary, and another one than that which is silent, it has taken over.
    func probeFinished(_ probe: PostgresConnection) {
        let now = loop.now
        if let found = probe.serverEnd, !found.isStandby {
            epoch.prefer(probe.rotation)
            probeDistance = 1
            let others = connections.compactMap { $0 }.filter {
                $0.lane != .probe && $0.isElsewhere(than: found)
            }
            if others.contains(where: { $0.isSilent(now) }) {
                report(.takenOver)
                for connection in others { connection.supersede(now: now) }
            }
            perform(pool.retryImmediately())
        }
        perform(pool.connected(probe.id, now: now))
    }
}
