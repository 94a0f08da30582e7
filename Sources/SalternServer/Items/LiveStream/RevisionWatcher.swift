public import Postgres
internal import Synchronization

/// Watches the accounts of all streams of a node, with one query at each tick for any number of streams, and none
/// without streams. A second query is about the vaults of these accounts, if there are any.
///
/// The node's loops share it. Streams subscribe on their loops, and ``run(database:clock:log:)`` sends the queries on
/// one of them. LISTEN and NOTIFY are not used: every commit takes the lock of their queue, and poolers do not forward
/// them.
public final class RevisionWatcher: Sendable {
    /// The interval between two queries. A change is reported at most this much later, plus the query's duration.
    public let interval: Duration
    /// The limit of streams of one account on a node.
    static let streamsPerAccount = 16

    private let idleTimeout: Duration
    private let state: Mutex<State>

    private struct State {
        var sessions = WatchedSessions()
        var vaults = WatchedVaults()
        var streamCounts: [AccountID: Int] = [:]
        /// Streams by the tick of their keep-alive, so that each tick scans only its own.
        var keptAlive: [[ObjectIdentifier: LiveSubscription]]
        var tick = 0
        var sleeping: CheckedContinuation<Void, Never>?

        /// Notes the revisions of lists of vaults by position in the query. Streams of an account with its first vault
        /// are added.
        mutating func noteLists(
            _ revisions: [Int64: Int64], of query: FindMovedRevisions.Query
        ) -> WatchedVaults.News {
            var first: [AccountID: Int64] = [:]
            for (position, revision) in revisions where revision > 0 {
                let account = query.sessions[Int(position) - 1].accountID
                if vaults.contains(account) {
                    vaults.read(account, listRevision: revision)
                } else {
                    first[account] = revision
                }
            }
            return first.isEmpty
                ? []
                : sessions.subscriptions { first[$0] != nil }.flatMap { account, subscriptions in
                    vaults.add(subscriptions, of: account, listRevision: first[account] ?? 0)
                }
        }
    }

    /// - Parameters:
    ///   - sessions: Decides the end of sessions.
    ///   - interval: The interval between two queries.
    ///   - keepAlive: The interval of keep-alive events on an idle stream.
    public init(
        sessions: SessionPolicy, interval: Duration = .milliseconds(250), keepAlive: Duration = .seconds(25)
    ) {
        self.interval = interval
        idleTimeout = sessions.idleTimeout
        let ticks = max(Int(keepAlive / interval), 1)
        state = Mutex(State(keptAlive: Array(repeating: [:], count: ticks)))
    }

    /// The number of open streams.
    public var streamCount: Int { state.withLock { $0.streamCounts.values.reduce(0, +) } }

    /// Adds a stream until the result is released.
    ///
    /// - Throws: ``TooManyStreams``.
    func subscribe(
        _ session: SessionKey, at present: FindRevision.Row, told: Int64?
    ) throws(TooManyStreams) -> Subscribed {
        let subscription = LiveSubscription(session: session, revision: present.revision, told: told)
        let place = state.withLock { state -> (tick: Int, sleeping: CheckedContinuation<Void, Never>?)? in
            guard state.streamCounts[session.accountID, default: 0] < Self.streamsPerAccount else { return nil }
            state.streamCounts[session.accountID, default: 0] += 1
            state.sessions.add(subscription, revision: present.revision)
            if present.listRevision > 0 || state.vaults.contains(session.accountID) {
                let known = state.vaults.add(
                    [subscription], of: session.accountID, listRevision: present.listRevision)
                for (subscription, vault, position) in known { subscription.move(vault, to: position) }
            }
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
            state.vaults.remove(subscription)
        }
    }

    // MARK: Ticks

    /// Sends queries until its task is cancelled. Called once, on the loop of `database`.
    public func run(database: PostgresClient, clock: any WallClock, log: Log) async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                await waitForStreams()
                try? await Task.sleep(for: interval)
                keepAlive()
                let poller = RevisionPoller(
                    database: database, now: clock.now, idleSince: clock.now - idleTimeout, report: note)
                // While the database does not answer, streams are kept alive and no further query is sent.
                if let query = state.withLock({ $0.sessions.beginQuery() }) {
                    group.addTask { await self.poll(query, poller, log) }
                }
                if let (query, isFirst) = state.withLock({ $0.sessions.beginApart(.now) }) {
                    group.addTask { await self.pollInPieces(query, isFirst: isFirst, poller, log) }
                }
                if state.withLock({ $0.vaults.begin(.now) }) { group.addTask { await self.pollVaults(database) } }
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

    private func pollVaults(_ database: PostgresClient) async {
        let poller = VaultPoller(database: database) { found, query in
            let news = self.state.withLock { $0.vaults.note(found, of: query) }
            for (subscription, vault, position) in news { subscription.move(vault, to: position) }
        }
        var hasFailed = false
        let due = state.withLock { $0.vaults.takeDue() }
        if !due.isEmpty {
            do throws(PostgresError) {
                let rows = try await database.execute(FindListedVaults(accounts: due.map(\.uuid)))
                state.withLock { $0.vaults.note(rows, of: due) }
            } catch {
                state.withLock { $0.vaults.setDue(due) }
                hasFailed = true
            }
        }
        if let query = state.withLock({ $0.vaults.makeQuery() }), await !poller.poll(query) {
            await poller.pollInPieces(query)
            hasFailed = true
        }
        state.withLock { [hasFailed] in $0.vaults.end(.now, hasFailed: hasFailed) }
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

    private func note(
        _ found: [Int64: Int64?], _ listRevisions: [Int64: Int64], _ query: FindMovedRevisions.Query
    ) {
        let (moved, known) = state.withLock { state in
            let moved = state.sessions.note(found, of: query)
            return (moved, state.noteLists(listRevisions, of: query))
        }
        for (subscription, vault, position) in known { subscription.move(vault, to: position) }
        for (subscription, revision) in moved {
            if let revision { subscription.move(to: revision) } else { subscription.end() }
        }
    }
}

/// A stream's registration with the watcher, which ends with the object.
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

/// Queries the revisions of accounts for a ``RevisionWatcher``.
struct RevisionPoller: Sendable {
    let database: PostgresClient
    let now: Timestamp
    let idleSince: Timestamp
    /// Receives the present revision by position, nil for a session that is no longer live, and the revisions of lists
    /// of vaults.
    let report: @Sendable ([Int64: Int64?], [Int64: Int64], FindMovedRevisions.Query) -> Void

    /// The number of concurrent queries. One to an unresponsive node occupies a connection for seconds.
    private static let piecesAtOnce = 4

    /// - Returns: The error, if the query failed.
    func poll(_ query: FindMovedRevisions.Query) async -> PostgresError? {
        let find = FindMovedRevisions(query: query, now: now, idleSince: idleSince)
        do throws(PostgresError) {
            guard let found = try await database.execute(find).first else { return nil }
            var moved = Dictionary(uniqueKeysWithValues: zip(found.positions, found.revisions.map { Int64?($0) }))
            if found.liveCount < query.sessions.count {
                let sessions = try await database.execute(FindLiveSessions(find: find))
                let live = Set(sessions.filter(\.isLive).map(\.position))
                for position in 1...Int64(query.sessions.count) where !live.contains(position) {
                    moved.updateValue(nil, forKey: position)
                }
            }
            report(moved, Dictionary(uniqueKeysWithValues: zip(found.positions, found.listRevisions)), query)
            return nil
        } catch {
            return error
        }
    }

    /// Queries the accounts of each hash part separately. Except at the first time, one part is queried before the
    /// others, which are skipped if it fails.
    ///
    /// - Returns: The error of a part, and true if the database answers no query at all.
    func pollInPieces(
        _ query: FindMovedRevisions.Query, isFirst: Bool
    ) async -> (failure: PostgresError?, isDown: Bool) {
        var pieces: ArraySlice<FindMovedRevisions.Query>
        do throws(PostgresError) {
            let parts = try await database.execute(FindHashParts(accounts: query.accounts))
            pieces = query.split(by: parts.map(\.part)).shuffled()[...]
        } catch {
            return (error, true)
        }
        if !isFirst, let first = pieces.popFirst(), let failure = await poll(first) { return (failure, false) }
        let failure = await withTaskGroup(of: PostgresError?.self) { group in
            var failure: PostgresError?
            for piece in pieces.prefix(Self.piecesAtOnce) { group.addTask { await poll(piece) } }
            pieces = pieces.dropFirst(Self.piecesAtOnce)
            for await result in group {
                failure = result ?? failure
                if let piece = pieces.popFirst() { group.addTask { await poll(piece) } }
            }
            return failure
        }
        return (failure, false)
    }
}
