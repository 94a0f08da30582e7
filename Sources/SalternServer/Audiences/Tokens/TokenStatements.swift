internal import Postgres

/// Finds the caller's session and account for a token.
struct FindTokenSubject: AccountRead {
    let tokenHash: TokenHash

    struct Row: Sendable {
        let sessionID: SessionID
        let expiresAt: Timestamp
        let lastUsedAt: Timestamp
        let plan: String
        let userid: String
    }

    static let sql: AccountSQL<Self> = """
        SELECT s.session_id, s.expires_at, s.last_used_at, a.plan, a.userid
        FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = \(.account) AND s.token_hash = \(\.tokenHash) AND a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the plan of a live session's account. Returns no row if the session has ended or is restricted.
struct FindPlanOfSession: Statement {
    typealias Row = String

    let accountID: AccountID
    let sessionID: SessionID
    let now: Timestamp
    /// A session without use since this time is not live.
    let idleSince: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.plan FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = \(\.accountID) AND s.session_id = \(\.sessionID) AND a.account_id = \(\.accountID)
            AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        """
}
