internal import Postgres

/// The latest entries of an account's security log behind a position: events, and sessions as long as there are rows of
/// them.
struct FindSecurityLog: AccountRead {
    let position: SecurityLogPosition
    let limit: Int64

    static let sql = """
        (
            SELECT e.occurred_at, e.event_id, e.kind, e.session_id, e.device_name, e.count, e.since
            FROM saltern.security_events e
            WHERE e.account_id = $1 AND (e.occurred_at, e.event_id) < ($2, $3)
            ORDER BY e.occurred_at DESC, e.event_id DESC LIMIT $4
        ) UNION ALL (
            SELECT s.created_at, s.session_id, 'session_opened', s.session_id, s.device_name, NULL, NULL
            FROM saltern.sessions s
            WHERE s.account_id = $1 AND NOT s.restricted AND (s.created_at, s.session_id) < ($2, $3)
            ORDER BY s.created_at DESC, s.session_id DESC LIMIT $4
        )
        ORDER BY 1 DESC, 2 DESC LIMIT $4
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(position.moment)
        parameters.append(position.id)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> SecurityLogEntry {
        SecurityLogEntry(
            position: SecurityLogPosition(moment: try row.next(), id: try row.next()), kind: try row.next(),
            sessionID: try row.next(), deviceName: try row.next(), count: try row.next(), since: try row.next())
    }
}

/// The oldest events of all accounts that are older than `before`, by the index `security_events_by_age`.
struct FindOldEvents: Statement {
    let before: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let accountID: AccountID
        let id: SecurityEventID
    }

    static let isReadOnly = true
    static let sql = """
        SELECT e.account_id, e.event_id FROM saltern.security_events e
        WHERE e.occurred_at <= $1 ORDER BY e.occurred_at LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(before)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(accountID: try row.next(), id: try row.next())
    }
}

/// Removes old events of an account. Returns how many there were.
struct RemoveEvents: Statement {
    let accountID: AccountID
    let before: Timestamp
    let ids: [SecurityEventID]

    static let sql = """
        WITH gone AS (
            DELETE FROM saltern.security_events e
            WHERE e.account_id = $1 AND e.occurred_at <= $2 AND e.event_id = ANY($3::uuid[])
            RETURNING e.event_id
        )
        SELECT count(*) FROM gone
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(before)
        parameters.append(ids.map(\.uuid))
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}
