internal import Postgres

/// The accounts, in one pass.
struct SumUpAccounts: Statement {
    let now: Timestamp

    static let isReadOnly = true
    static let sql = """
        SELECT count(*), count(a.locked_at), count(*) FILTER (WHERE a.created_at > $1),
            count(*) FILTER (WHERE a.created_at > $2), coalesce(sum(a.item_count), 0)::bigint,
            coalesce(sum(a.item_bytes), 0)::bigint
        FROM saltern.accounts a
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now - .seconds(7 * 86_400))
        parameters.append(now - .seconds(30 * 86_400))
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Statistics.Accounts {
        Statistics.Accounts(
            total: try row.next(), locked: try row.next(), newInWeek: try row.next(), newInMonth: try row.next(),
            items: try row.next(), bytes: try row.next())
    }
}

/// How many sessions are live.
struct CountLiveSessions: Statement {
    let now: Timestamp
    let idleSince: Timestamp

    static let isReadOnly = true
    static let sql = """
        SELECT count(*) FROM saltern.sessions s WHERE s.expires_at > $1 AND s.last_used_at > $2 AND NOT s.restricted
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(idleSince)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}

/// What is counted quickly.
struct CountTheRest: Statement {
    let now: Timestamp

    struct Row: Sendable {
        let secondFactors: Int64
        let recoveries: Int64
        let shares: Int64
        let openInvites: Int64
        let databaseBytes: Int64
    }

    static let isReadOnly = true
    static let sql = """
        SELECT (SELECT count(*) FROM saltern.second_factors f WHERE f.confirmed_at IS NOT NULL),
            (SELECT count(*) FROM saltern.recoveries),
            (SELECT count(*) FROM saltern.shares h WHERE h.expires_at IS NULL OR h.expires_at > $1),
            (
                SELECT count(*) FROM saltern.invites i
                WHERE i.used_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > $1
            ),
            pg_database_size(current_database())
        """

    func bind(to parameters: inout Parameters) { parameters.append(now) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            secondFactors: try row.next(), recoveries: try row.next(), shares: try row.next(),
            openInvites: try row.next(), databaseBytes: try row.next())
    }
}
