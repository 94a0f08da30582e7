internal import Postgres

/// Finds the latest entries of an account's security log behind a position: events, and sessions whose rows still
/// exist.
struct FindSecurityLog: AccountRead {
    let position: SecurityLogPosition
    let limit: Int64

    static let sql: AccountSQL<Self> = """
        (
            SELECT e.occurred_at, e.event_id, e.kind, e.session_id, e.device_name, e.count, e.since
            FROM saltern.security_events e
            WHERE e.account_id = \(.account) AND (e.occurred_at, e.event_id) < (\(\.position.moment), \(\.position.id))
            ORDER BY e.occurred_at DESC, e.event_id DESC LIMIT \(\.limit)
        ) UNION ALL (
            SELECT s.created_at, s.session_id, 'session_opened', s.session_id, s.device_name, NULL, NULL
            FROM saltern.sessions s
            WHERE s.account_id = \(.account) AND NOT s.restricted
                AND (s.created_at, s.session_id) < (\(\.position.moment), \(\.position.id))
            ORDER BY s.created_at DESC, s.session_id DESC LIMIT \(\.limit)
        )
        ORDER BY 1 DESC, 2 DESC LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> SecurityLogEntry {
        SecurityLogEntry(
            position: SecurityLogPosition(moment: try row.next(), id: try row.next()), kind: try row.next(),
            sessionID: try row.next(), deviceName: try row.next(), count: try row.next(), since: try row.next())
    }
}

/// Finds the oldest events older than `before` in all accounts, by the index `security_events_by_age`.
struct FindOldEvents: Statement {
    typealias Row = DueRow<SecurityEventID>

    let before: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.account_id, e.event_id FROM saltern.security_events e
        WHERE e.occurred_at <= \(\.before) AND e.occurred_at > '-infinity' AND e.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY e.occurred_at LIMIT \(\.limit)
        """
}

/// Removes old events of an account and returns their number.
struct RemoveEvents: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let before: Timestamp
    let ids: [SecurityEventID]

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.security_events e
            WHERE e.account_id = \(\.accountID) AND e.occurred_at <= \(\.before) AND e.event_id = ANY(\(\.ids)::uuid[])
            RETURNING e.event_id
        )
        SELECT count(*) FROM gone
        """
}
