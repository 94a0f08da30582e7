internal import EventLoop

/// Servers that say nothing: how long they are waited for.
extension PostgresConnection {
    /// Whether the server has owed an answer for long enough to ask who is the primary.
    func isSilent(_ now: ContinuousClock.Instant) -> Bool {
        if phase == .closed || phase == .open && pipeline.isIdle { return false }
        return now >= lastReceived + patience
    }

    private var patience: Duration {
        let patience = client.configuration.takeoverPatience
        // A server that still answers does so soon; those of its connections that did not have had the whole time.
        if isSuperseded { return patience / 4 }
        return probeTarget?.isShort(among: opening?.serverCount ?? 0) == true ? patience / 4 : patience
    }

    /// Whoever looks for a server that answers does not wait long for one that does not, or begins to and stops.
    private func isSilentProbe(_ now: ContinuousClock.Instant) -> Bool { lane == .probe && isSilent(now) }

    /// Whether it leads, or may lead, to another server. With one server only, an opening that takes long is slow.
    func isElsewhere(than found: ServerEnd) -> Bool {
        if let serverEnd { serverEnd.serverStartedAt != found.serverStartedAt } else { opening?.hasChoice ?? false }
    }

    /// Whether it was begun at another server than those that are begun now.
    private var goesElsewhere: Bool {
        let distance = rotation - client.epoch.preferredServer
        let count = opening?.serverCount ?? 0
        return count == 0 ? distance != 0 : !distance.isMultiple(of: count)
    }

    /// Another server is the primary now. What is under way may still be answered, but is not waited for.
    func supersede(now: ContinuousClock.Instant) {
        switch phase {
        case .opening, .settingUp:
            if isSilent(now) {
                failure = failure ?? .timedOut
                end(.lost)
            } else if goesElsewhere {
                // Begun a moment too early: it would have to be silent first, and nothing is lost with it.
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

    /// Gives the connection up when it takes too long to open or the server is silent for too long.
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
