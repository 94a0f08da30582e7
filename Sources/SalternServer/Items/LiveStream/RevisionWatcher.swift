public import Postgres
internal import Synchronization

/// Watches the accounts of all the streams of a node, with one question to the database a tick whatever their number,
/// and none when there are none.
///
/// Shared by the node's loops: streams subscribe from theirs, and ``run(database:clock:log:)`` asks on one of them.
/// (Not LISTEN and NOTIFY: the lock of their queue is taken by every commit, and poolers do not pass them on.)
public final class RevisionWatcher: Sendable {
    /// How long it waits between two questions; a change is told at most so much later, and the time of a question.
    public let interval: Duration
    /// Streams that one account may have on one node.
    static let streamsPerAccount = 16

    private let idleTimeout: Duration
    private let state: Mutex<State>

    private struct State {
        var sessions = WatchedSessions()
        var streamCounts: [AccountID: Int] = [:]
        /// Streams by the tick in which they are kept alive: only those of one are looked at in a tick.
        var keptAlive: [[ObjectIdentifier: LiveSubscription]]
        var tick = 0
        var sleeping: CheckedContinuation<Void, Never>?
    }

    /// - Parameters:
    ///   - sessions: When sessions end.
    ///   - interval: Between two questions.
    ///   - keepAlive: How often a stream on which nothing happens is written to.
    public init(
        sessions: SessionPolicy, interval: Duration = .milliseconds(250), keepAlive: Duration = .seconds(25)
    ) {
        self.interval = interval
        idleTimeout = sessions.idleTimeout
        let ticks = max(Int(keepAlive / interval), 1)
        state = Mutex(State(keptAlive: Array(repeating: [:], count: ticks)))
    }

    /// Streams that are open.
    public var streamCount: Int { state.withLock { $0.streamCounts.values.reduce(0, +) } }

    /// Takes up a stream until the result is let go.
    /// - Throws: ``TooManyStreams``.
    func subscribe(_ session: SessionKey, revision: Int64, told: Int64?) throws(TooManyStreams) -> Subscribed {
        let subscription = LiveSubscription(session: session, revision: revision, told: told)
        let place = state.withLock { state -> (tick: Int, sleeping: CheckedContinuation<Void, Never>?)? in
            guard state.streamCounts[session.accountID, default: 0] < Self.streamsPerAccount else { return nil }
            state.streamCounts[session.accountID, default: 0] += 1
            state.sessions.add(subscription, revision: revision)
            state.keptAlive[state.tick][ObjectIdentifier(subscription)] = subscription
            return (state.tick, state.sleeping.take())
        }
        guard let place else { throw TooManyStreams() }
        place.sleeping?.resume()
        return Subscribed(subscription, watcher: self, tick: place.tick)
    }

    fileprivate func unsubscribe(_ subscription: LiveSubscription, tick: Int) {
        state.withLock { state in
            let session = subscription.session
            state.streamCounts[session.accountID, default: 1] -= 1
            if state.streamCounts[session.accountID] == 0 { state.streamCounts[session.accountID] = nil }
            state.keptAlive[tick][ObjectIdentifier(subscription)] = nil
            state.sessions.remove(subscription)
        }
    }

    // MARK: Ticks

    /// Asks until its task is cancelled. Called once, on the loop of `database`.
    public func run(database: PostgresClient, clock: any WallClock, log: Log) async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                await waitForStreams()
                try? await Task.sleep(for: interval)
                keepAlive()
                let poller = RevisionPoller(
                    database: database, now: clock.now, idleSince: clock.now - idleTimeout, report: note)
                // While the database does not answer, streams are kept alive and nothing more is asked.
                if let query = state.withLock({ $0.sessions.beginQuery() }) {
                    group.addTask { await self.poll(query, poller, log) }
                }
                if let (query, isFirst) = state.withLock({ $0.sessions.beginApart(.now) }) {
                    group.addTask { await self.pollInPieces(query, isFirst: isFirst, poller, log) }
                }
            }
            group.cancelAll()
        }
    }

    private func poll(_ query: FindMovedRevisions.Query, _ poller: RevisionPoller, _ log: Log) async {
        if await poller.poll(query) == nil {
            let isWhole = state.withLock { $0.sessions.endQuestion() }
            if isWhole { log.write(.info, "live_streams_answered", [:]) }
        } else {
            state.withLock { $0.sessions.setApart(query) }
        }
    }

    private func pollInPieces(
        _ query: FindMovedRevisions.Query, isFirst: Bool, _ poller: RevisionPoller, _ log: Log
    ) async {
        let (failure, isDown) = await poller.pollInPieces(query, isFirst: isFirst)
        let unanswered = state.withLock { $0.sessions.endApart(.now, isDown: isDown) }
        guard let unanswered, let failure else { return }
        if case .cancelled = failure { return }
        log.write(.warning, "live_streams_unanswered", ["error": failure, "sessions": unanswered])
    }

    private func waitForStreams() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hasStreams = state.withLock { state in
                    let hasStreams = !state.sessions.isEmpty || Task.isCancelled
                    if !hasStreams { state.sleeping = continuation }
                    return hasStreams
                }
                if hasStreams { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleeping.take() }?.resume()
        }
    }

    private func keepAlive() {
        let due = state.withLock { state in
            state.tick = (state.tick + 1) % state.keptAlive.count
            return state.keptAlive[state.tick]
        }
        for subscription in due.values { subscription.keepAlive() }
    }

    private func note(_ found: [Int64: Int64?], _ query: FindMovedRevisions.Query) {
        let moved = state.withLock { $0.sessions.note(found, of: query) }
        for (subscription, revision) in moved {
            if let revision { subscription.move(to: revision) } else { subscription.end() }
        }
    }
}

/// A stream's place with the watcher, for as long as somebody holds it.
final class Subscribed: Sendable {
    let subscription: LiveSubscription
    private let watcher: RevisionWatcher
    private let tick: Int

    fileprivate init(_ subscription: LiveSubscription, watcher: RevisionWatcher, tick: Int) {
        self.subscription = subscription
        self.watcher = watcher
        self.tick = tick
    }

    deinit { watcher.unsubscribe(subscription, tick: tick) }
}
