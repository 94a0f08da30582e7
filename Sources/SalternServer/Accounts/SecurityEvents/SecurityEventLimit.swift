internal import Postgres

/// How many entries of a kind an account's security log keeps: the latest. So a flood of one kind, which whoever has a
/// token can make, pushes out nothing that tells of another.
enum SecurityEventLimit {
    static let perKind = 100
    /// How many go at once: more than come at once.
    private static let slice = 1_000

    /// Parts of a `WITH`, `noted` and `flushed`: an event of a kind for each row of a part, and the end of what is beyond the
    /// limit.
    ///
    /// - Parameters:
    ///   - kind: The kind.
    ///   - account: The account.
    ///   - source: The part. It has one row when there is something to note.
    ///   - moment: When it happened.
    ///   - id: The event's name.
    ///   - session: The session that did it.
    ///   - deviceName: That session's device.
    static func noting<Root, Context>(
        _ kind: SecurityEvent.Kind, of account: SQLTemplate<Root, Context>, when source: SQLFragment,
        at moment: SQLTemplate<Root, Context>, id: SQLTemplate<Root, Context>,
        session: SQLTemplate<Root, Context> = "NULL", deviceName: SQLTemplate<Root, Context> = "NULL"
    ) -> SQLTemplate<Root, Context> {
        """
        noted AS (
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind, session_id, device_name)
            SELECT \(account)::uuid, \(moment)::timestamptz, \(id)::uuid, \(kind), \(session)::uuid, \(deviceName)::text
            FROM \(source)
            RETURNING account_id
        ), \(flushing("\(kind)", of: account, after: "noted"))
        """
    }

    /// A part of a `WITH`, `flushed`: removes the oldest events of a kind beyond the limit, of an account. Those that
    /// somebody else is removing are left to them, so that two never wait for each other.
    ///
    /// - Parameters:
    ///   - kind: The kind.
    ///   - account: The account.
    ///   - noted: The part that has inserted events of that kind, no more than ``perKind``, with a row for each.
    static func flushing<Root, Context>(
        _ kind: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>, after noted: SQLFragment
    ) -> SQLTemplate<Root, Context> {
        """
        flushed AS (
            DELETE FROM saltern.security_events f
            WHERE f.account_id = \(account) AND f.kind = \(kind) AND f.kind > '' AND f.event_id = ANY (ARRAY(
                SELECT o.event_id FROM saltern.security_events o
                WHERE o.account_id = \(account) AND o.kind = \(kind) AND o.kind > ''
                    AND (o.occurred_at, o.event_id) <= (
                    SELECT k.occurred_at, k.event_id FROM saltern.security_events k
                    WHERE k.account_id = \(account) AND k.kind = \(kind) AND k.kind > ''
                    ORDER BY k.occurred_at DESC, k.event_id DESC
                    OFFSET (SELECT \(perKind) - count(*) FROM \(noted)) LIMIT 1)
                ORDER BY o.occurred_at, o.event_id LIMIT \(slice)
                FOR UPDATE SKIP LOCKED))
        )
        """
    }
}
