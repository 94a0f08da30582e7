internal import Postgres

/// How many entries of a kind an account's security log keeps: at least the latest hundred. So a flood of one kind, which
/// a stolen token can cause, removes no entry of another kind.
enum SecurityEventLimit {
    static let perKind = 100
    /// One of so many events, on average, removes those beyond the limit. The removal reads a hundred entries, so with each
    /// event it would cost several times as much as the event.
    static let interval: UInt64 = 16
    /// How many go at once: more than come at once.
    private static let slice = 1_000

    /// Returns whether an event removes those beyond the limit. Its identifier is random and drawn by the server, so no
    /// client chooses which events do.
    static func isDue(after event: SecurityEventID) -> Bool { event.uuid.low.isMultiple(of: interval) }

    /// Draws whether an event removes those beyond the limit whose identifier the server does not know yet.
    static func isDue() -> Bool { isDue(after: .random()) }

    /// A statement, or a part of a `WITH`: removes the oldest events of a kind beyond the limit, of an account. Those that
    /// another transaction is removing are left to it, so that two never wait for each other.
    ///
    /// - Parameter condition: A condition without columns. When it is false, nothing is read.
    static func dropping<Root, Context>(
        _ kind: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        when condition: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        DELETE FROM saltern.security_events f
        WHERE \(condition) AND f.account_id = \(account) AND f.kind = \(kind) AND f.kind > '' AND f.event_id = ANY (ARRAY(
            SELECT o.event_id FROM saltern.security_events o
            WHERE \(condition) AND o.account_id = \(account) AND o.kind = \(kind) AND o.kind > ''
                AND (o.occurred_at, o.event_id) <= (
                SELECT k.occurred_at, k.event_id FROM saltern.security_events k
                WHERE k.account_id = \(account) AND k.kind = \(kind) AND k.kind > ''
                ORDER BY k.occurred_at DESC, k.event_id DESC OFFSET \(perKind) LIMIT 1)
            ORDER BY o.occurred_at, o.event_id LIMIT \(slice)
            FOR UPDATE SKIP LOCKED))
        """
    }
}
