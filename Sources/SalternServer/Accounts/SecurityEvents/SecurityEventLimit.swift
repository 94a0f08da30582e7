internal import Postgres

/// Limits the entries of each kind in an account's security log; at least the latest hundred stay. A flood of one kind,
/// which a stolen token can cause, removes no entry of another kind.
enum SecurityEventLimit {
    static let perKind = 100
    /// One in this many events, on average, removes those beyond the limit. The removal reads a hundred entries,
    /// several times the cost of an event.
    static let interval: UInt64 = 16
    /// Maximum of entries in one removal, above the number of new entries between two removals.
    private static let slice = 1_000

    /// Returns true if an event removes those beyond the limit. The server draws its random identifier, so clients
    /// cannot choose these events.
    static func isDue(after event: SecurityEventID) -> Bool { event.uuid.low.isMultiple(of: interval) }

    /// Draws the decision for an event whose identifier does not exist yet.
    static func isDue() -> Bool { isDue(after: .random()) }

    /// Removes the oldest events of a kind beyond the limit, as a statement or a part of a `WITH`. It skips events that
    /// another transaction is removing, so two removals never wait for each other.
    ///
    /// - Parameter condition: A condition without columns. If it is false, nothing is read.
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
