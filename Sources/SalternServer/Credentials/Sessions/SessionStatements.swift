internal import Postgres

/// A session that was found live.
struct LiveSession: Sendable {
    /// True if its use is due to be recorded again.
    let isTouchDue: Bool
}

/// Finds the caller's session if it is live and not restricted.
///
/// It does not read the account, because locked and deleted accounts have no sessions. Locks, deletions and changes of
/// the credential lock the account's row `FOR UPDATE` in a separate statement, and then end the sessions. New sessions
/// lock the row at least `FOR KEY SHARE`, if it is not locked. One therefore precedes the other entirely, and the later
/// one sees the earlier one's changes.
///
/// Costs 16 thousand instructions. Together with the item's statement, 1,000 take 0.032 s of CPU in PostgreSQL. A join
/// of the account takes 0.041 s, and a single statement with the item's 0.039 s: two are planned once each, and the
/// sync is shared.
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

/// Finds the caller's session like ``Authenticate``, and locks the account's row until the transaction ends, unless an
/// admin has locked the account.
///
/// The next statement takes its snapshot after the lock, so it sees the previous writer's changes. In one statement
/// with the lock, rows of other tables would be those from before the wait; a ``ShortPath`` then changes nothing. Costs
/// 59 thousand instructions.
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

/// Records a session's use, unless its row is locked at the moment: it never waits.
///
/// Costs 67 thousand instructions, once a minute of use. The row is found twice, because only SELECT can skip locked
/// rows.
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

/// The statements of sessions.
extension StatementList {
    static var sessions: [any Statement.Type] {
        [
            Authenticate.self, AuthenticateForWrite.self, TouchSession.self, OpenSession.self, StoreSession.self,
            CountSessions.self, FindSurplusSessions.self, RecordSessionEnds<TrimSessions>.self, TrimSessions.self,
            RecordSessionEnds<RemoveAllSessions>.self, RemoveAllSessions.self, Owned<FindSessions>.self,
            Guarded<RecordCallersSessionEnds<RemoveSession>>.self, Guarded<RemoveSession>.self,
            Guarded<RecordCallersSessionEnds<RemoveOtherSessions>>.self, Guarded<RemoveOtherSessions>.self,
            Guarded<RecordCallersSessionEnds<RemoveCurrentSession>>.self, Guarded<RemoveCurrentSession>.self,
        ]
    }
}
