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
                        AND e.lane = \(EventLane.orderedSQL) AND \(EventQueueKey.isWaiting)
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

// Events of sessions have no order, so each is its own lane: log-ins of one account wait for no common row. A node
// sends these statements only if a destination receives the events (``Outbox/gets(_:)``). Otherwise they add no cost to
// a log-in.
//
// At most ``EventLane/queueLimit`` such events of an account wait at a destination. Further ones are counted in the
// lane ``EventLane/dropped``, which a delivery moves to the node's metrics.

/// The SQL of events of sessions.
enum SessionEvents {
    /// Selects the sessions `s` and the receiving destinations `d`, each with the event's identifier `lane` and its
    /// place among the destination's.
    private static func rows<Root, Context>(
        _ kind: EventKind, _ condition: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        seed: SQLTemplate<Root, Context>, now: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        SELECT s.account_id, d.destination_id, s.session_id,
            \(EventLane.identifier(seed, "uuid_send(s.session_id) || uuid_send(d.destination_id)")) AS lane,
            row_number() OVER (PARTITION BY d.destination_id ORDER BY s.session_id) AS place
        FROM saltern.sessions s CROSS JOIN saltern.destinations d
        WHERE s.account_id = \(account) AND NOT s.restricted AND s.expires_at > \(now) AND \(condition)
            AND d.disabled_at IS NULL AND \(kind) = ANY (d.kinds)
        """
    }

    /// Returns the statement that queues the events, or counts them where the account has no room.
    static func queueing<Root, Context>(
        _ kind: EventKind, _ condition: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        seed: SQLTemplate<Root, Context>, now: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        MERGE INTO saltern.event_queues q USING (
            SELECT r.account_id, r.destination_id, r.lane, count(*) AS count FROM (
                SELECT e.account_id, e.destination_id, CASE WHEN (
                    SELECT count(*) FROM (
                        SELECT FROM saltern.event_queues w
                        WHERE w.account_id = \(account) AND w.destination_id = e.destination_id
                            AND w.lane > \(EventLane.droppedSQL)
                        LIMIT \(EventLane.queueLimit)
                    ) c) + e.place <= \(EventLane.queueLimit) THEN e.lane ELSE \(EventLane.droppedSQL) END AS lane
                FROM (\(rows(kind, condition, of: account, seed: seed, now: now))) e
            ) r GROUP BY r.account_id, r.destination_id, r.lane
        ) n ON q.account_id = n.account_id AND q.destination_id = n.destination_id AND q.lane = n.lane
        WHEN MATCHED THEN UPDATE SET last_number = q.last_number + n.count
        WHEN NOT MATCHED THEN INSERT (account_id, destination_id, lane, last_number, latest, due_at, ends)
            VALUES (n.account_id, n.destination_id, n.lane, n.count, \(seed), \(now), true)
        """
    }

    /// Returns the statement that stores the queued events. It finds their queues by the seed, because a cluster writes
    /// from a table of every node in two steps.
    static func storing<Root, Context>(
        _ kind: EventKind, _ condition: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        seed: SQLTemplate<Root, Context>, now: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        MERGE INTO saltern.outgoing_events e USING (
            SELECT q.account_id, q.destination_id, q.lane, s.session_id
            FROM saltern.sessions s JOIN saltern.event_queues q ON q.account_id = s.account_id AND q.lane
                = \(EventLane.identifier(seed, "uuid_send(s.session_id) || uuid_send(q.destination_id)"))
            WHERE s.account_id = \(account) AND q.account_id = \(account) AND q.latest = \(seed) AND \(condition)
        ) n ON e.account_id = n.account_id AND e.destination_id = n.destination_id AND e.lane = n.lane AND e.number = 1
        WHEN NOT MATCHED THEN INSERT
            (account_id, destination_id, lane, number, event_id, kind, session_id, occurred_at, waiting_since)
            VALUES (n.account_id, n.destination_id, n.lane, 1, n.lane, \(kind), n.session_id, \(now), \(now))
        """
    }
}

/// Queues the event of a session opened in the same transaction. ``StoreOpenedSession`` follows.
struct QueueOpenedSession: Statement {
    typealias Row = ChangedRows

    let accountID: AccountID
    let sessionID: SessionID
    let now: Timestamp
    let seed = UUID.random()

    static let sql: SQL<Self> = SessionEvents.queueing(
        .sessionOpened, isMeant, of: "\(\.accountID)", seed: "\(\.seed)", now: "\(\.now)")
    fileprivate static let isMeant: SQL<Self> = "s.session_id = \(\.sessionID)"
}

/// Stores this event.
struct StoreOpenedSession: Statement {
    typealias Row = ChangedRows

    let queue: QueueOpenedSession

    static let sql: SQL<Self> = "\(storing, of: \.queue)"
    private static let storing: SQL<QueueOpenedSession> = SessionEvents.storing(
        .sessionOpened, QueueOpenedSession.isMeant, of: "\(\.accountID)", seed: "\(\.seed)", now: "\(\.now)")
}

/// Queues the events of the sessions that `removal` ends, before it runs. ``StoreEnds`` follows.
struct QueueEnds: Statement {
    typealias Row = ChangedRows

    let removal: RemoveAllSessions
    let seed = UUID.random()

    static let sql: SQL<Self> = SessionEvents.queueing(
        .sessionEnded, "\(RemoveAllSessions.isMeant, of: \.removal)", of: "\(\.removal.accountID)", seed: "\(\.seed)",
        now: "\(\.removal.now)")
}

/// Stores these events.
struct StoreEnds: Statement {
    typealias Row = ChangedRows

    let queue: QueueEnds

    static let sql: SQL<Self> = "\(storing, of: \.queue)"
    private static let storing: SQL<QueueEnds> = SessionEvents.storing(
        .sessionEnded, "\(RemoveAllSessions.isMeant, of: \.removal)", of: "\(\.removal.accountID)", seed: "\(\.seed)",
        now: "\(\.removal.now)")
}

/// Queues the events of sessions that the account's owner ends. ``StoreCallersEnds`` follows.
struct QueueCallersEnds<Removal: CallersSessionRemoval>: AccountWrite {
    typealias Row = ChangedRows

    let removal: Removal
    let seed = UUID.random()

    static var sql: CallerSQL<Self> {
        SessionEvents.queueing(
            .sessionEnded, "\(Removal.isMeant, of: \.removal)", of: "\(.account)", seed: "\(\.seed)", now: "\(.now)")
    }
}

/// Stores these events.
struct StoreCallersEnds<Removal: CallersSessionRemoval>: AccountWrite {
    typealias Row = ChangedRows

    let queue: QueueCallersEnds<Removal>

    static var sql: CallerSQL<Self> {
        SessionEvents.storing(
            .sessionEnded, "\(Removal.isMeant, of: \.queue.removal)", of: "\(.account)", seed: "\(\.queue.seed)",
            now: "\(.now)")
    }
}

extension Transaction {
    /// Ends sessions, with their entries in the account's security log and their outgoing events.
    /// - Returns: The number of sessions.
    func endSessions(_ removal: RemoveAllSessions) async throws(PostgresError) -> Int {
        let ends = QueueEnds(removal: removal)
        return try await execute(RecordSessionEnds(removal: removal), ends, StoreEnds(queue: ends), removal).3.count
    }
}

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
