internal import Postgres

/// The sessions with streams on a node, and the last revision of each one's account.
///
/// One query covers all. If it fails, its sessions are set apart and queried in parts: a missing node of a cluster must
/// not prevent events for accounts on other nodes.
struct WatchedSessions {
    private struct Watched {
        /// The last revision of the account.
        var revision: Int64
        var subscriptions: [LiveSubscription]
    }

    /// The pause before sessions without an answer are queried again.
    static let patience = Duration.seconds(5)

    private var sessions: [SessionKey: Watched] = [:]
    /// The sessions that are queried separately.
    private var apart: Set<SessionKey> = []
    /// The query of each tick. Nil if it must be rebuilt.
    private var query: FindMovedRevisions.Query?
    private var isPolling = false
    private var isPollingSeparately = false
    /// The time of the next separate query.
    private var due: ContinuousClock.Instant?
    /// True if missing answers have been logged.
    private var isUnanswered = false

    var isEmpty: Bool { sessions.isEmpty }

    mutating func add(_ subscription: LiveSubscription, revision: Int64) {
        let session = subscription.session
        if let known = sessions[session]?.revision {
            if known > revision { subscription.move(to: known) }
        } else {
            query = nil
        }
        sessions[session, default: Watched(revision: revision, subscriptions: [])].subscriptions.append(subscription)
    }

    mutating func remove(_ subscription: LiveSubscription) {
        let session = subscription.session
        sessions[session]?.subscriptions.removeAll { $0 === subscription }
        guard sessions[session]?.subscriptions.isEmpty == true else { return }
        sessions[session] = nil
        apart.remove(session)
        query = nil
    }

    /// Returns the streams of some accounts.
    func subscriptions(_ isWanted: (AccountID) -> Bool) -> [AccountID: [LiveSubscription]] {
        sessions.reduce(into: [:]) { found, entry in
            guard isWanted(entry.key.accountID) else { return }
            found[entry.key.accountID, default: []] += entry.value.subscriptions
        }
    }

    // MARK: Together

    /// Returns the next query. Nil if there is nothing to query, or the previous query is running.
    mutating func beginQuery() -> FindMovedRevisions.Query? {
        guard !isPolling, sessions.count > apart.count else { return nil }
        isPolling = true
        if let query { return query }
        let query = makeQuestion { !apart.contains($0) }
        self.query = query
        return query
    }

    /// - Returns: True if all sessions have answers again after missing ones were logged.
    mutating func endQuestion() -> Bool {
        isPolling = false
        guard isUnanswered, apart.isEmpty else { return false }
        isUnanswered = false
        return true
    }

    /// Sets the sessions of a failed query apart. They are queried in parts at once.
    mutating func setApart(_ query: FindMovedRevisions.Query) {
        isPolling = false
        apart.formUnion(query.sessions.filter { sessions[$0] != nil })
        self.query = nil
        due = nil
    }

    /// Stores the accounts' revisions. All sessions of the question rejoin the common query.
    ///
    /// - Parameter found: The present revision by position. Nil for a session that is no longer live.
    /// - Returns: The streams to notify.
    mutating func note(
        _ found: [Int64: Int64?], of query: FindMovedRevisions.Query
    ) -> [(LiveSubscription, Int64?)] {
        let count = apart.count
        if !apart.isEmpty { apart.subtract(query.sessions) }
        if !found.isEmpty || apart.count < count { self.query = nil }
        var moved: [(LiveSubscription, Int64?)] = []
        for (position, revision) in found {
            let session = query.sessions[Int(position) - 1]
            guard let watched = sessions[session] else { continue }
            if let revision { sessions[session]?.revision = revision }
            for subscription in watched.subscriptions { moved.append((subscription, revision)) }
        }
        return moved
    }

    // MARK: Apart

    /// Returns the query for the sessions set apart, if it is due, and true if it is their first.
    mutating func beginApart(_ now: ContinuousClock.Instant) -> (FindMovedRevisions.Query, isFirst: Bool)? {
        guard !isPollingSeparately, !apart.isEmpty, now >= due ?? now else { return nil }
        isPollingSeparately = true
        defer { due = now }
        return (makeQuestion { apart.contains($0) }, due == nil)
    }

    /// - Parameter isDown: True if the database answers no query at all; separate queries then have no use.
    /// - Returns: The number of sessions without an answer, unless it was logged before.
    mutating func endApart(_ now: ContinuousClock.Instant, isDown: Bool) -> Int? {
        isPollingSeparately = false
        let count = apart.count
        if isDown {
            apart = []
            query = nil
        }
        // Others may have been set apart meanwhile, which are queried at once.
        if due != nil { due = now + Self.patience }
        guard count > 0, !isUnanswered else { return nil }
        isUnanswered = true
        return count
    }

    private func makeQuestion(_ isAsked: (SessionKey) -> Bool) -> FindMovedRevisions.Query {
        var query = FindMovedRevisions.Query()
        for (session, watched) in sessions where isAsked(session) {
            query.append(session, revision: watched.revision)
        }
        return query
    }
}
