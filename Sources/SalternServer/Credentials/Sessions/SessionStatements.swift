internal import Postgres

/// A session that was found to be live.
struct LiveSession: Sendable {
    /// Whether its last use was recorded long enough ago to be recorded again.
    let isTouchDue: Bool
}

/// Finds the caller's session, when it is live and not restricted.
///
/// It does not look at the account: a locked or deleted one has no sessions. Whoever locks or deletes an account, or
/// changes its credential, locks its row `FOR UPDATE` in a statement of its own and then ends its sessions; whoever opens
/// a session locks the row too, at least `FOR KEY SHARE`, while it is not locked. So one comes wholly before the other, and
/// the later one sees what the earlier one did.
///
/// Costs 16 thousand instructions. With the item it is for, PostgreSQL takes 0.032 s of CPU for 1,000, and 0.041 with a join
/// of the account. As one statement with that of the item it would be 0.039, for two are planned once each and the sync is
/// shared anyway.
struct Authenticate: Statement {
    let caller: Caller

    static let isReadOnly = true
    static let isPreliminary = true
    static let sql: SQL<Self> = """
        SELECT \(Caller.isTouchDue, from: \.caller) FROM saltern.sessions live
        WHERE \(Caller.isLiveSession, from: \.caller)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> LiveSession {
        LiveSession(isTouchDue: try row.next())
    }
}

/// Finds the caller's session like ``Authenticate``, and locks the account's row until the transaction ends, when it is not
/// locked by an admin.
///
/// The statement that follows has a snapshot of its own, taken after the lock: it sees what the last writer left.
/// (In one statement with the lock, the rows of other tables would be those from before the wait; a ``ShortPath`` changes
/// nothing then.) Costs 59 thousand instructions.
struct AuthenticateForWrite: Statement {
    let caller: Caller

    static let isPreliminary = true
    static let sql: SQL<Self> = """
        SELECT \(Caller.isTouchDue, from: \.caller)
        FROM saltern.sessions live JOIN saltern.accounts a ON a.account_id = live.account_id
        WHERE \(Caller.isLiveSession, from: \.caller)
            AND a.account_id = \(\.caller.accountID) AND a.locked_at IS NULL
        FOR NO KEY UPDATE OF a
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> LiveSession {
        LiveSession(isTouchDue: try row.next())
    }
}

/// Records that a session was used, unless somebody has locked it at this moment: it waits for nobody.
///
/// Costs 67 thousand instructions, once a minute of use. The row is found twice, because only SELECT can skip one that is
/// locked.
struct TouchSession: Statement {
    let caller: Caller

    static let sql: SQL<Self> = """
        UPDATE saltern.sessions t SET last_used_at = \(\.caller.now)
        WHERE t.account_id = \(\.caller.accountID) AND t.token_hash = (
            SELECT s.token_hash FROM saltern.sessions s
            WHERE s.account_id = \(\.caller.accountID) AND s.token_hash = \(\.caller.tokenHash)
                AND \(SessionLiveness.hasNotEnded("s", at: "\(\.caller.now)", idleSince: "\(\.caller.idleSince)"))
                AND s.last_used_at <= \(\.caller.touchBefore)
            FOR UPDATE SKIP LOCKED)
        """
}

/// The account's live sessions, oldest first.
struct FindSessions: AccountRead {
    /// The caller's own token.
    let tokenHash: TokenHash
    let now: Timestamp
    let idleSince: Timestamp

    struct Row: Sendable {
        let id: SessionID
        let deviceName: String?
        let createdAt: Timestamp
        let lastUsedAt: Timestamp
        let expiresAt: Timestamp
        let isCurrent: Bool
    }

    static let sql: AccountSQL<Self> = """
        SELECT s.session_id, s.device_name, s.created_at, s.last_used_at, s.expires_at, s.token_hash = \(\.tokenHash)
        FROM saltern.sessions s
        WHERE s.account_id = \(.account) AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        ORDER BY s.created_at, s.session_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
