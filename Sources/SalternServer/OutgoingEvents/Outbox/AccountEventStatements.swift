internal import Postgres

/// Reports an event of an account to each destination of its kind. ``QueueAccountEvent`` and ``StoreAccountEvent``
/// write it in the transaction that it reports, with the account's row locked against other writers. They write nothing
/// if no destination receives the kind.
struct ReportedEvent: Sendable {
    let accountID: AccountID
    let kind: EventKind
    let now: Timestamp
    /// The number that an earlier statement wrote to the account's row if there is something to report. Nil if there
    /// always is.
    var writer: Int64?
    let seed = UUID.random()
}

/// Takes the next number in the queue of each destination. ``StoreAccountEvent`` follows.
///
/// A receipt takes none where another one waits that no lease has covered, behind ``EventLane/receiptLimit`` events:
/// that event reports both. The row is still updated, because a lease must not cover that event before this commit.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct QueueAccountEvent: Statement {
    typealias Row = ChangedRows

    let event: ReportedEvent

    static let sql: SQL<Self> = """
        MERGE INTO saltern.event_queues q USING (
            SELECT a.account_id, d.destination_id, CASE WHEN \(\.event.kind.rawValue) = \(EventKind.receiptStored) THEN (
                SELECT max(w.number) FROM (
                    SELECT e.number, e.kind FROM saltern.outgoing_events e
                    WHERE e.account_id = \(\.event.accountID) AND e.destination_id = d.destination_id
                        AND e.lane = \(EventLane.orderedSQL) AND e.parked_at IS NULL
                    ORDER BY e.number OFFSET \(EventLane.receiptLimit)
                ) w WHERE w.kind = \(EventKind.receiptStored)) END AS waiting
            FROM saltern.accounts a CROSS JOIN saltern.destinations d
            WHERE a.account_id = \(\.event.accountID)
                AND (\(\.event.writer)::bigint IS NULL OR a.writer = \(\.event.writer))
                AND d.disabled_at IS NULL AND \(\.event.kind.rawValue) = ANY (d.kinds)
        ) s ON q.account_id = s.account_id AND q.destination_id = s.destination_id AND q.lane = \(EventLane.orderedSQL)
        WHEN MATCHED AND s.waiting > q.leased_number THEN UPDATE SET latest = q.latest
        WHEN MATCHED THEN UPDATE
            SET last_number = q.last_number + 1, latest = \(\.event.seed), due_at = coalesce(q.due_at, \(\.event.now))
        WHEN NOT MATCHED THEN INSERT (account_id, destination_id, lane, last_number, latest, due_at)
            VALUES (s.account_id, s.destination_id, \(EventLane.orderedSQL), 1, \(\.event.seed), \(\.event.now))
        """
}

/// Stores the event under the number that ``QueueAccountEvent`` has taken.
struct StoreAccountEvent: Statement {
    typealias Row = ChangedRows

    let event: ReportedEvent

    static let sql: SQL<Self> = """
        MERGE INTO saltern.outgoing_events n USING (
            SELECT q.account_id, q.destination_id, q.lane, q.last_number AS number,
                \(EventLane.identifier("\(\.event.seed)", "uuid_send(q.destination_id)")) AS event_id
            FROM saltern.event_queues q
            WHERE q.account_id = \(\.event.accountID) AND q.lane = \(EventLane.orderedSQL) AND q.latest = \(\.event.seed)
        ) s ON n.account_id = s.account_id AND n.destination_id = s.destination_id AND n.lane = s.lane
            AND n.number = s.number
        WHEN NOT MATCHED THEN INSERT (account_id, destination_id, lane, number, event_id, kind, occurred_at, waiting_since)
            VALUES (s.account_id, s.destination_id, s.lane, s.number, s.event_id, \(\.event.kind.rawValue),
                \(\.event.now), \(\.event.now))
        """
}

/// Ends the queues of a deleted account with their last events. ``RemoveIdleQueues`` follows.
struct EndQueues: Statement {
    typealias Row = ChangedRows

    let accountID: AccountID

    static let sql: SQL<Self> =
        "UPDATE saltern.event_queues q SET ends = true WHERE q.account_id = \(\.accountID) AND NOT q.ends"
}

/// Removes the queues that have no event left.
struct RemoveIdleQueues: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.event_queues q WHERE q.account_id = \(\.accountID) AND q.due_at IS NULL"
}

extension Transaction {
    /// Writes an event. Requires an existing account whose row is locked.
    func write(_ event: ReportedEvent) async throws(PostgresError) {
        _ = try await execute(QueueAccountEvent(event: event), StoreAccountEvent(event: event))
    }
}
