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

    private struct Watched {
        /// What is known of the account.
        var revision: Int64
        var subscriptions: [LiveSubscription]
    }

    private struct State {
        var sessions: [SessionKey: Watched] = [:]
        var streamCounts: [AccountID: Int] = [:]
        /// What is asked each tick; nil when it has to be made anew.
        var question: FindMovedRevisions.Question?
        var isAsking = false
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
            if let known = state.sessions[session]?.revision {
                if known > revision { subscription.move(to: known) }
            } else {
                state.question = nil
            }
            state.sessions[session, default: Watched(revision: revision, subscriptions: [])].subscriptions
                .append(subscription)
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
            state.sessions[session]?.subscriptions.removeAll { $0 === subscription }
            guard state.sessions[session]?.subscriptions.isEmpty == true else { return }
            state.sessions[session] = nil
            state.question = nil
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
                // While the database does not answer, streams are kept alive and nothing more is asked.
                guard let question = beginQuestion() else { continue }
                group.addTask { await self.ask(question, database, now: clock.now, log) }
            }
            group.cancelAll()
        }
    }

    private func ask(
        _ question: FindMovedRevisions.Question, _ database: PostgresClient, now: Timestamp, _ log: Log
    ) async {
        let find = FindMovedRevisions(question: question, now: now, idleSince: now - idleTimeout)
        do throws(PostgresError) {
            guard let found = try await database.execute(find).first else { return endQuestion(question, [:]) }
            var moved = Dictionary(uniqueKeysWithValues: zip(found.positions, found.revisions.map { Int64?($0) }))
            if found.liveCount < question.sessions.count {
                let sessions = try await database.execute(FindLiveSessions(find: find))
                let live = Set(sessions.filter(\.isLive).map(\.position))
                for position in 1...Int64(question.sessions.count) where !live.contains(position) {
                    moved.updateValue(nil, forKey: position)
                }
            }
            endQuestion(question, moved)
        } catch {
            endQuestion(question, [:])
            if case .cancelled = error { return }
            log.write(.warning, "live_streams_unanswered", ["error": error])
        }
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

    /// What to ask now; nil when nobody listens or the last question has not been answered.
    private func beginQuestion() -> FindMovedRevisions.Question? {
        state.withLock { state in
            guard !state.isAsking, !state.sessions.isEmpty else { return nil }
            state.isAsking = true
            if let question = state.question { return question }
            var question = FindMovedRevisions.Question()
            for (session, watched) in state.sessions { question.append(session, revision: watched.revision) }
            state.question = question
            return question
        }
    }

    /// - Parameter found: By position where the account is now; nil where the session is live no more.
    private func endQuestion(_ question: FindMovedRevisions.Question, _ found: [Int64: Int64?]) {
        var moved: [(LiveSubscription, Int64?)] = []
        state.withLock { state in
            state.isAsking = false
            if found.isEmpty { return }
            state.question = nil
            for (position, revision) in found {
                let session = question.sessions[Int(position) - 1]
                guard let watched = state.sessions[session] else { continue }
                if let revision { state.sessions[session]?.revision = revision }
                for subscription in watched.subscriptions { moved.append((subscription, revision)) }
            }
        }
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
