internal import EventLoop

/// Changes of the epoch of connections.
extension PostgresClient {
    /// Handles a notification of another client of the process.
    func receive(_ event: ConnectionEpoch.Event) {
        switch event {
        case .begun: followEpoch()
        case .stalled(let epoch):
            followEpoch()
            // Connections of earlier epochs have no significance for the current server.
            guard epoch >= pool.epoch, !pool.commitsAreClosed else { return }
            changingCommits { perform(pool.closeCommits(now: loop.now)) }
        }
    }

    /// Retires the connections of earlier epochs.
    ///
    /// Idle and silent ones end immediately, the others after their pending requests. Commits of those are in doubt.
    func followEpoch() {
        let current = epoch.current
        guard current > pool.epoch else { return }
        let now = loop.now
        let left = connections.compactMap { $0 }.filter { $0.lane != .probe && ($0.isOutdated || !$0.isOpen) }
        if left.contains(where: { $0.isOutdated && $0.isSilent(now) }) { report(.takenOver) }
        perform(pool.begin(current))
        for connection in left { connection.supersede(now: now) }
        perform(pool.retryImmediately())
    }
}

extension PostgresConnection {
    /// True if it was found usable in an earlier epoch.
    var isOutdated: Bool { epoch < client.epoch.current }
}
