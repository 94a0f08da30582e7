internal import Postgres

/// The sessions that have streams on a node, and what is known of their accounts.
///
/// All are asked about together. When that fails, those that were asked about are set apart, and asked about in
/// pieces: of a cluster some node may be gone, which must not keep the others' accounts from being told.
struct WatchedSessions {
    private struct Watched {
        /// What is known of the account.
        var revision: Int64
        var subscriptions: [LiveSubscription]
    }

    /// How long those that stay without an answer are left alone.
    static let patience = Duration.seconds(5)

    private var sessions: [SessionKey: Watched] = [:]
    /// Those that are not asked about together with the others.
    private var apart: Set<SessionKey> = []
    /// What is asked each tick; nil when it has to be made anew.
    private var query: FindMovedRevisions.Query?
    private var isPolling = false
    private var isPollingSeparately = false
    /// When those apart are asked about again.
    private var due: ContinuousClock.Instant?
    /// Whether it was said that some are without an answer.
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

    // MARK: Together

    /// What to ask now; nil when there is nothing or the last question has not been answered.
    mutating func beginQuery() -> FindMovedRevisions.Query? {
        guard !isPolling, sessions.count > apart.count else { return nil }
        isPolling = true
        if let query { return query }
        let query = makeQuestion { !apart.contains($0) }
        self.query = query
        return query
    }

    /// - Returns: Whether everybody has an answer again, when it was said before that some have none.
    mutating func endQuestion() -> Bool {
        isPolling = false
        guard isUnanswered, apart.isEmpty else { return false }
        isUnanswered = false
        return true
    }

    /// There was no answer: from now on those that were asked about are asked about in pieces, and at once.
    mutating func setApart(_ query: FindMovedRevisions.Query) {
        isPolling = false
        apart.formUnion(query.sessions.filter { sessions[$0] != nil })
        self.query = nil
        due = nil
    }

    /// Notes where accounts are, of which all those asked about are together with the others again.
    /// - Parameter found: By position where the account is now; nil where the session is live no more.
    /// - Returns: Whom to tell.
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

    /// Those that are to be asked about in pieces now, and whether they are for the first time.
    mutating func beginApart(_ now: ContinuousClock.Instant) -> (FindMovedRevisions.Query, isFirst: Bool)? {
        guard !isPollingSeparately, !apart.isEmpty, now >= due ?? now else { return nil }
        isPollingSeparately = true
        defer { due = now }
        return (makeQuestion { apart.contains($0) }, due == nil)
    }

    /// - Parameter isDown: Whether nothing at all is answered: then there is nothing to be gained by asking in pieces.
    /// - Returns: How many sessions are without an answer, when that has not been said yet.
    mutating func endApart(_ now: ContinuousClock.Instant, isDown: Bool) -> Int? {
        isPollingSeparately = false
        let count = apart.count
        if isDown {
            apart = []
            query = nil
        }
        // Others may have been set apart meanwhile; they are asked about at once.
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
