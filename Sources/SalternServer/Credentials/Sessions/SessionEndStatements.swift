internal import Postgres

// The end of a session is recorded in the account's security log, with the device's name and the session's start,
// because no other record remains. Each end takes two statements. The first writes the events; the second removes the
// sessions that have an event, so that none ends unrecorded. One statement for both would take several steps on a
// cluster. The second also writes a new version of the account's row. A write on the short path that has seen the
// session before then does not proceed (``ShortPath/isUnmoved``).

/// SQL for both statements of the end of sessions.
enum SessionEnd {
    /// Returns the statement that records the ends of sessions, except restricted ones.
    ///
    /// - Parameters:
    ///   - condition: Selects the sessions `s` to end.
    ///   - account: The account.
    ///   - moment: The end of the session `s`, which may precede the removal of the row.
    static func noting<Root, Context>(
        _ condition: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        at moment: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        MERGE INTO saltern.security_events n USING (
            SELECT s.account_id, s.session_id, s.device_name, s.created_at, \(moment)::timestamptz AS ended_at
            FROM saltern.sessions s WHERE s.account_id = \(account) AND NOT s.restricted AND \(condition)
        ) e ON n.account_id = e.account_id AND n.occurred_at = e.ended_at AND n.event_id = e.session_id
        WHEN NOT MATCHED THEN INSERT
            (account_id, occurred_at, event_id, kind, session_id, device_name, since)
            VALUES (e.account_id, e.ended_at, e.session_id, \(SecurityEvent.Kind.sessionEnded), e.session_id,
                e.device_name, e.created_at)
        """
    }

    /// Returns the statement that removes the sessions. The caller may append a RETURNING clause for the alias `s`.
    ///
    /// - Parameters:
    ///   - condition: Selects the sessions `s` to end. It may include sessions without an event.
    ///   - moment: The time of the events. Nil if a use of the session may have changed it since.
    ///   - isDropDue: True to also remove events beyond ``SecurityEventLimit``.
    static func removing<Root, Context>(
        _ condition: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        at moment: SQLTemplate<Root, Context>?, dropping isDropDue: SQLTemplate<Root, Context> = "true"
    ) -> SQLTemplate<Root, Context> {
        let time: SQLTemplate<Root, Context> =
            if let moment {
                "n.occurred_at = \(moment)"
            } else {
                "n.kind = \(SecurityEvent.Kind.sessionEnded) AND n.kind > ''"
            }
        return """
            WITH dropped AS (
                \(SecurityEventLimit.dropping(
                    "\(SecurityEvent.Kind.sessionEnded)", of: account, when: isDropDue))
            ), moved AS (
                UPDATE saltern.accounts a SET writer = a.writer WHERE a.account_id = \(account)
            )
            DELETE FROM saltern.sessions s
            WHERE s.account_id = \(account) AND \(condition) AND (s.restricted OR EXISTS (
                SELECT FROM saltern.security_events n
                WHERE n.account_id = \(account) AND \(time) AND n.event_id = s.session_id))
            """
    }

    /// Returns the end of a session `s` that may have expired. It avoids sums with time zones: for the planner of a
    /// cluster their result may differ between nodes.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - idleSince: The time less the idle timeout.
    static func moment<Root, Context>(
        now: SQLTemplate<Root, Context>, idleSince: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        LEAST(\(now), s.expires_at, ((s.last_used_at AT TIME ZONE 'UTC')
            + (\(now)::timestamptz - \(idleSince)::timestamptz)) AT TIME ZONE 'UTC')
        """
    }
}

/// A statement that removes sessions, sent after ``RecordSessionEnds``.
protocol SessionRemoval: Statement {
    /// The statement that records their ends.
    static var noting: SQL<Self> { get }
}

/// Records the ends of the sessions that `removal` removes, in the same transaction, under the lock of the account's
/// row.
struct RecordSessionEnds<Removal: SessionRemoval>: Statement {
    let removal: Removal

    static var sql: SQL<Self> { "\(Removal.noting, of: \.removal)" }
}

/// A statement that removes sessions of the caller's account, sent after ``RecordCallersSessionEnds``.
protocol CallersSessionRemoval: AccountWrite {
    /// The statement that records their ends.
    static var noting: CallerSQL<Self> { get }
    /// The condition that a session `s` is one of them.
    static var isMeant: CallerSQL<Self> { get }
}

/// Records the ends of the sessions that `removal` removes, in the same transaction.
struct RecordCallersSessionEnds<Removal: CallersSessionRemoval>: AccountWrite {
    typealias Row = ChangedRows

    let removal: Removal

    static var sql: CallerSQL<Self> { "\(Removal.noting, of: \.removal)" }
}

/// The number of sessions that stay if an account exceeds its plan's limit.
enum SessionLimit {
    /// Plans below this limit lose only the surplus sessions.
    static let smallest: Int64 = 32

    /// Returns the number of sessions that stay, including the new one: a quarter below `limit`, so that the next
    /// log-ins end none. Ending one at each log-in would cost several times as much as the log-in.
    static func kept(of limit: Int64) -> Int64 { limit < smallest ? limit : limit - limit / 4 }
}

/// Finds and locks the account's expired sessions, and the least recently used ones beyond the limit. It follows
/// ``LockAccount``, and ``TrimSessions`` ends the sessions. A log-in with the right key is therefore never rejected
/// because of forgotten devices.
///
/// The next two statements name these rows by their keys. They do not scan the account's other sessions or events, nor
/// dead rows before a vacuum.
struct FindSurplusSessions: Statement {
    typealias Row = TokenHash

    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp
    /// The session that was just opened, which stays.
    let tokenHash: TokenHash
    /// The number of other sessions that stay.
    let otherSessions: Int64

    static let sql: SQL<Self> = """
        SELECT s.token_hash FROM saltern.sessions s
        WHERE s.account_id = \(\.accountID) AND s.token_hash <> \(\.tokenHash) AND (
            s.expires_at <= \(\.now) OR s.last_used_at <= \(\.idleSince) OR s.token_hash IN (
                SELECT o.token_hash FROM saltern.sessions o
                WHERE o.account_id = \(\.accountID) AND o.token_hash <> \(\.tokenHash)
                    AND \(SessionLiveness.isLive("o", at: "\(\.now)", idleSince: "\(\.idleSince)"))
                ORDER BY o.last_used_at DESC, o.token_hash OFFSET \(\.otherSessions)))
        FOR UPDATE
        """
}

/// Ends the sessions that ``FindSurplusSessions`` has found and locked, in the same transaction.
struct TrimSessions: SessionRemoval {
    typealias Row = SessionID

    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp
    let tokenHashes: [TokenHash]

    static let noting: SQL<Self> = SessionEnd.noting(isMeant, of: "\(\.accountID)", at: moment)
    static let sql: SQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(\.accountID)", at: moment))
        RETURNING s.session_id
        """
    private static let isMeant: SQL<Self> = "s.token_hash = ANY(\(\.tokenHashes)::bytea[])"
    private static let moment: SQL<Self> = SessionEnd.moment(now: "\(\.now)", idleSince: "\(\.idleSince)")
}

/// Ends all sessions of an account, or all but one, on all nodes. Returns a row for each.
struct RemoveAllSessions: SessionRemoval {
    typealias Row = SessionID

    let accountID: AccountID
    /// The session that stays.
    let exception: TokenHash?
    let now: Timestamp
    /// Limits the end to sessions that this passkey has opened.
    var passkey: PasskeyHash?

    static let noting: SQL<Self> = SessionEnd.noting(isMeant, of: "\(\.accountID)", at: moment)
    static let sql: SQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(\.accountID)", at: moment))
        RETURNING s.session_id
        """
    static let isMeant: SQL<Self> = """
        s.token_hash IS DISTINCT FROM \(\.exception)
            AND (\(\.passkey)::bytea IS NULL OR s.passkey_hash = \(\.passkey))
        """
    private static let moment: SQL<Self> = "LEAST(\(\.now), s.expires_at)"
}
