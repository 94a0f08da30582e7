internal import EventLoop

/// Probes for a takeover while the server is silent.
///
/// The new primary is a promoted standby, behind another host of the connection string or behind the same name.
extension PostgresClient {
    /// Probes one server after another while any connection is silent.
    func probeNextHost(now: ContinuousClock.Instant) {
        let isSilent = connections.contains { $0.map { $0.lane != .probe && $0.isSilent(now) } ?? false }
        guard isSilent else {
            probeDistance = 1
            return
        }
        if let action = pool.probeOtherHost() { perform([action]) }
    }

    /// Returns the server after the last probed one.
    func nextProbeTarget() -> ProbeTarget {
        defer { probeDistance += 1 }
        return ProbeTarget(preferred: epoch.preferredServer, distance: probeDistance)
    }

    /// Handles a successful probe. A primary other than the silent server has taken over.
    func probeFinished(_ probe: PostgresConnection) {
        let now = loop.now
        if let found = probe.serverEnd, !found.isStandby {
            epoch.prefer(probe.serverIndex)
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
