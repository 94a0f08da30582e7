internal import Postgres

/// How many entries of a kind an account's security log keeps: the latest. So a flood of one kind, which whoever has a
/// token can make, pushes out nothing that tells of another.
enum SecurityEventLimit {
    static let perKind = 100
    /// How many go at once: more than come at once.
    private static let slice = 1_000

    /// A statement, or a part of a `WITH`: removes the oldest events of a kind beyond the limit, of an account. Those that
    /// somebody else is removing are left to them, so that two never wait for each other.
    static func dropping<Root, Context>(
        _ kind: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        DELETE FROM saltern.security_events f
        WHERE f.account_id = \(account) AND f.kind = \(kind) AND f.kind > '' AND f.event_id = ANY (ARRAY(
            SELECT o.event_id FROM saltern.security_events o
            WHERE o.account_id = \(account) AND o.kind = \(kind) AND o.kind > ''
                AND (o.occurred_at, o.event_id) <= (
                SELECT k.occurred_at, k.event_id FROM saltern.security_events k
                WHERE k.account_id = \(account) AND k.kind = \(kind) AND k.kind > ''
                ORDER BY k.occurred_at DESC, k.event_id DESC OFFSET \(perKind) LIMIT 1)
            ORDER BY o.occurred_at, o.event_id LIMIT \(slice)
            FOR UPDATE SKIP LOCKED))
        """
    }
}
