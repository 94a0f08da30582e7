internal import EventLoop

/// Time limits for silent servers.
extension PostgresConnection {
    /// Returns true if a reply has been pending for long enough to probe for another primary.
    func isSilent(_ now: ContinuousClock.Instant) -> Bool {
        if phase == .closed || phase == .open && pipeline.isIdle { return false }
        return now >= lastReceived + patience
    }

    private var patience: Duration {
        let patience = client.configuration.takeoverPatience
        // A server that still runs replies soon. Its silent connections have had the whole time.
        if isSuperseded { return patience / 4 }
        return probeTarget?.isShort(among: opening?.serverCount ?? 0) == true ? patience / 4 : patience
    }

    /// Returns true for a probe whose server does not reply, or stops replying. Probes have the short limit.
    private func isSilentProbe(_ now: ContinuousClock.Instant) -> Bool { lane == .probe && isSilent(now) }

    /// Returns true if it leads, or may lead, to another server. With only one server, a long opening is merely slow.
    func isElsewhere(than found: ServerEnd) -> Bool {
        if let serverEnd { serverEnd.serverStartedAt != found.serverStartedAt } else { opening?.hasChoice ?? false }
    }

    /// True if it was started at another server than new connections.
    private var goesElsewhere: Bool {
        let distance = rotation - client.epoch.preferredServer
        let count = opening?.serverCount ?? 0
        return count == 0 ? distance != 0 : !distance.isMultiple(of: count)
    }

    /// Retires the connection, because another server is the primary now. Pending requests may still be answered.
    func supersede(now: ContinuousClock.Instant) {
        switch phase {
        case .opening, .settingUp:
            if isSilent(now) {
                failure = failure ?? .timedOut
                end(.lost)
            } else if goesElsewhere {
                // It was started just before the takeover. Closing it loses nothing, and avoids the wait for its
                // silence.
                end(.closed)
            }
        case .open:
            isSuperseded = true
            isRetiring = true
            client.connectionIsRetiring(self)
            checkDeadlines(now: now)
        case .closed: break
        }
    }

    /// Ends the connection when opening takes too long or the server is silent for too long.
    func checkDeadlines(now: ContinuousClock.Instant) {
        switch phase {
        case .opening, .settingUp:
            if now >= openingDeadline || isSilentProbe(now) {
                failure = failure ?? opening?.resolutionFailure ?? .timedOut
                if lane != .probe { client.demote(host: rotation) }
                end(.lost)
            }
        case .open:
            if pipeline.isIdle { return }
            if lane == .probe && now >= openingDeadline || isSilentProbe(now) { return end(.lost) }
            if isSuperseded && isSilent(now) { return end(.lost) }
            if now >= lastReceived + client.configuration.silenceTimeout { return end(.silent) }
            let isCommitting = lane == .commits || commitsUnderWay > 0
            if isCommitting, !isStalled, now >= lastReceived + client.configuration.commitPatience {
                isStalled = true
                client.connectionStalled(self)
            }
        case .closed: break
        }
    }
}
