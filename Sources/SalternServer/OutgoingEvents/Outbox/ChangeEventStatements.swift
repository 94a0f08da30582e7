internal import Postgres

/// Queues the change of an account's items for one destination. ``StoreChange`` follows in the same transaction.
struct QueueChange: Statement {
    typealias Row = ChangedRows

    let accountID: AccountID
    let destinationID: DestinationID
    let now: Timestamp
    let seed = UUID.random()

    static let sql: SQL<Self> = """
        INSERT INTO saltern.event_queues AS q (account_id, destination_id, lane, last_number, latest, due_at, ends)
        VALUES (\(\.accountID), \(\.destinationID), \(EventLane.changesSQL), 1, \(\.seed), \(\.now), true)
        ON CONFLICT (account_id, destination_id, lane) DO UPDATE
        SET last_number = q.last_number + 1, latest = \(\.seed), due_at = coalesce(q.due_at, \(\.now))
        """
}

/// Stores the change in place of a waiting one, so each account and destination has at most one.
struct StoreChange: Statement {
    typealias Row = ChangedRows

    let queue: QueueChange

    static let sql: SQL<Self> = """
        MERGE INTO saltern.outgoing_events e USING (
            SELECT q.account_id, q.destination_id, q.lane, q.last_number AS number, \(AccountCounter.head("a.revision")) AS revision
            FROM saltern.event_queues q JOIN saltern.accounts a ON a.account_id = q.account_id
            WHERE q.account_id = \(\.queue.accountID) AND a.account_id = \(\.queue.accountID)
                AND q.destination_id = \(\.queue.destinationID)
                AND q.lane = \(EventLane.changesSQL) AND q.latest = \(\.queue.seed)
        ) n ON e.account_id = n.account_id AND e.destination_id = n.destination_id AND e.lane = n.lane
        WHEN MATCHED THEN UPDATE
            SET number = n.number, event_id = \(\.queue.seed), revision = n.revision, occurred_at = \(\.queue.now),
                waiting_since = \(\.queue.now), parked_at = NULL
        WHEN NOT MATCHED THEN INSERT
            (account_id, destination_id, lane, number, event_id, kind, revision, occurred_at, waiting_since)
            VALUES (n.account_id, n.destination_id, n.lane, n.number, \(\.queue.seed), \(EventKind.changes), n.revision,
                \(\.queue.now), \(\.queue.now))
        """
}
