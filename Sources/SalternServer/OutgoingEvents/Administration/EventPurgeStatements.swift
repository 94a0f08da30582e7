internal import Postgres

// The purge bounds both tables whatever receivers do. It parks events without further attempts, removes expired parked
// events, and ends the wait of queues without waiting events. It locks accounts before queues, like their writers.
//
// Statements about given accounts write conditions of times with `coalesce`. Otherwise the planner may choose an index
// by time while its statistics are old, and each statement then reads the rows of all accounts.

/// Finds accounts with events that have waited for too long.
struct FindOverdueEvents: Statement {
    typealias Row = AccountID

    let before: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.account_id FROM saltern.outgoing_events e
        WHERE e.parked_at IS NULL AND e.waiting_since <= \(\.before)
            AND e.account_id <> ALL(\(\.except)::uuid[])
        LIMIT \(\.limit)
        """
}

/// Locks the due queues of these accounts like their writers. A cluster locks rows of several accounts by an update
/// only.
struct LockQueues: Statement {
    let accounts: [AccountID]

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q SET attempts = q.attempts
        WHERE q.account_id = ANY(\(\.accounts)) AND coalesce(q.due_at, 'infinity') < 'infinity'
        """
}

/// Parks these events. ``SettleQueues`` follows.
struct ParkOverdueEvents: Statement {
    let accounts: [AccountID]
    let before: Timestamp
    let now: Timestamp

    static let sql: SQL<Self> = """
        UPDATE saltern.outgoing_events e SET parked_at = \(\.now)
        WHERE e.account_id = ANY(\(\.accounts)) AND coalesce(e.parked_at, 'infinity') = 'infinity'
            AND e.waiting_since <= \(\.before)
        """
}

/// Finds accounts with expired parked events.
struct FindExpiredEvents: Statement {
    typealias Row = AccountID

    let before: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.account_id FROM saltern.outgoing_events e
        WHERE e.parked_at IS NOT NULL AND e.parked_at <= \(\.before)
            AND e.account_id <> ALL(\(\.except)::uuid[])
        LIMIT \(\.limit)
        """
}

/// Removes these events.
struct RemoveExpiredEvents: Statement {
    typealias Row = ChangedRows

    let accounts: [AccountID]
    let before: Timestamp

    static let sql: SQL<Self> = """
        DELETE FROM saltern.outgoing_events e
        WHERE e.account_id = ANY(\(\.accounts)) AND coalesce(e.parked_at, 'infinity') <= \(\.before)
        """
}

/// Finds accounts with queues without a waiting event that were due for longer than any event is kept. A node that
/// crashed can leave such queues.
struct FindIdleQueues: Statement {
    typealias Row = AccountID

    let before: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT q.account_id FROM saltern.event_queues q
        WHERE q.due_at IS NOT NULL AND q.due_at <= \(\.before)
            AND q.account_id <> ALL(\(\.except)::uuid[]) AND NOT EXISTS (
            SELECT FROM saltern.outgoing_events e
            WHERE e.account_id = q.account_id AND e.destination_id = q.destination_id AND e.lane = q.lane
                AND e.parked_at IS NULL)
        LIMIT \(\.limit)
        """
}

/// Ends the wait, the lease and the failed attempts of queues that have no waiting event. Follows ``LockQueues``.
/// ``RemoveEndedQueues`` follows.
struct SettleQueues: Statement {
    let accounts: [AccountID]

    static let sql: SQL<Self> = """
        UPDATE saltern.event_queues q SET due_at = NULL, lease = NULL, attempts = 0
        WHERE q.account_id = ANY(\(\.accounts)) AND coalesce(q.due_at, 'infinity') < 'infinity' AND NOT EXISTS (
            SELECT FROM saltern.outgoing_events e
            WHERE e.account_id = ANY(\(\.accounts)) AND e.account_id = q.account_id
                AND e.destination_id = q.destination_id AND e.lane = q.lane
                AND coalesce(e.parked_at, 'infinity') = 'infinity')
        """
}

/// Removes empty queues of these accounts that have ended or have no destination.
struct RemoveEndedQueues: Statement {
    let accounts: [AccountID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.event_queues q
        WHERE q.account_id = ANY(\(\.accounts)) AND q.due_at IS NULL AND (q.ends OR NOT EXISTS (
            SELECT FROM saltern.destinations d WHERE d.destination_id = q.destination_id))
        """
}

extension PurgeRun {
    /// Parks events that have waited for a day longer than they are attempted. Removes expired parked events and idle
    /// queues.
    /// - Returns: The number of removed events.
    mutating func purgeOutgoingEvents(now: Timestamp) async throws -> Int {
        let overdue = now - RetrySchedule.lifetime - .seconds(86_400)
        _ = try await inGroups {
            FindOverdueEvents(before: overdue, except: $0, limit: $1)
        } step: { transaction, accounts in
            _ = try await transaction.execute(
                LockQueues(accounts: accounts), ParkOverdueEvents(accounts: accounts, before: overdue, now: now),
                SettleQueues(accounts: accounts), RemoveEndedQueues(accounts: accounts))
            return 0
        }
        let expired = now - RetrySchedule.parkedRetention
        let removed = try await inGroups {
            FindExpiredEvents(before: expired, except: $0, limit: $1)
        } step: { transaction, accounts in
            try await transaction.execute(RemoveExpiredEvents(accounts: accounts, before: expired)).first?.count ?? 0
        }
        _ = try await inGroups {
            FindIdleQueues(before: overdue - RetrySchedule.parkedRetention, except: $0, limit: $1)
        } step: { transaction, accounts in
            _ = try await transaction.execute(
                LockQueues(accounts: accounts), SettleQueues(accounts: accounts), RemoveEndedQueues(accounts: accounts))
            return 0
        }
        return removed
    }
}
