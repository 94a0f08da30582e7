internal import EventLoop

/// When the server is silent, another may have taken over: a standby that was promoted, behind another host of the
/// connection string or behind the same name.
extension PostgresClient {
    /// Looks at one server after the other, for as long as some connection is silent.
    func lookForAnotherServer(now: ContinuousClock.Instant) {
        let isSilent = connections.contains { $0.map { $0.lane != .scout && $0.isSilent(now) } ?? false }
        guard isSilent else {
            scoutedDistance = 1
            return
        }
        if let action = pool.scout() { perform([action]) }
    }

    /// The server after the one that was looked at last.
    func nextScoutedServer() -> ScoutedServer {
        defer { scoutedDistance += 1 }
        return ScoutedServer(preferred: epoch.preferredServer, distance: scoutedDistance)
    }

    /// A server has answered. When it is a primary, and another one than that which is silent, it has taken over.
    func scoutArrived(_ scout: PostgresConnection) {
        let now = loop.now
        if let found = scout.serverEnd, !found.isStandby {
            epoch.prefer(scout.rotation)
            scoutedDistance = 1
            let others = connections.compactMap { $0 }.filter {
                $0.lane != .scout && $0.isElsewhere(than: found)
            }
            if others.contains(where: { $0.isSilent(now) }) {
                report(.takenOver)
                for connection in others { connection.supersede(now: now) }
            }
            perform(pool.hurry())
        }
        perform(pool.connected(scout.id, now: now))
    }
}
