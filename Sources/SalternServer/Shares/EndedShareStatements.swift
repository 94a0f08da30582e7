internal import Postgres

/// The shares that ended first, by the index `shares_by_expiry`. Those that are used up have ended too.
struct FindEndedShares: Statement {
    let now: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let id: ShareID
        let owner: AccountID?
    }

    static let isReadOnly = true
    static let sql = """
        SELECT s.share_id, s.owner_account FROM saltern.shares s
        WHERE s.expires_at <= $1
        ORDER BY s.expires_at LIMIT $2
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(id: try row.next(), owner: try row.next())
    }
}

/// Removes shares that have ended, and returns which.
struct RemoveEndedShares: Statement {
    let ids: [ShareID]
    let now: Timestamp

    static let sql = """
        DELETE FROM saltern.shares s WHERE s.share_id = ANY($1::bytea[]) AND s.expires_at <= $2
        RETURNING s.share_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(ids)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ShareID { try row.next() }
}
