internal import EventLoop

/// Connections of an epoch that is over.
extension PostgresClient {
    /// What another client of the process has found.
    func receive(_ event: ConnectionGeneration.Event) {
        switch event {
        case .begun: followEpoch()
        case .stalled(let epoch):
            followEpoch()
            // What happens to connections of before says nothing about the server that is used now.
            guard epoch >= pool.epoch, !pool.commitsAreClosed else { return }
            changingCommits { perform(pool.closeCommits(now: loop.now)) }
        }
    }

    /// Gives them up, if another epoch has begun: at once those that nobody uses and those that are silent, the others after
    /// what is under way. What that commits is in doubt.
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
    /// Whether it was found to be good in an epoch that is over.
    var isOutdated: Bool { epoch < client.epoch.current }
}
