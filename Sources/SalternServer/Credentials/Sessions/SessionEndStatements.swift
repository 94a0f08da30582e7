internal import Postgres

// What ends is noted in the account's security log, with the device's name and when the session began, because its row is
// its only other record. Each end of sessions is two statements: the first writes the events of those that are to end, the
// second removes what has an event, so that nothing ends unnoted. (One statement that removes and notes would take several
// steps on a cluster.) The second also makes another version of the account's row, so that no write on the short path goes
// on with a session that it has seen before (``ShortPath/isUnmoved``).

/// The end of sessions, told in both of its statements.
enum SessionEnd {
    /// The statement that notes which sessions end, but for those that a recovery has opened.
    ///
    /// - Parameters:
    ///   - condition: Which sessions `s` end.
    ///   - account: Whose.
    ///   - moment: When the session `s` ended, which may have been before the row is removed.
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

    /// The statement that removes them; what comes behind it is what it returns of them, of the alias `s`.
    ///
    /// - Parameters:
    ///   - condition: Which sessions `s` end. It may be true of more than those that were noted.
    ///   - moment: What they were noted with; nil when the use of a session may have changed it since.
    ///   - isDropDue: Whether events beyond ``SecurityEventLimit`` are removed, too.
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

    /// The moment at which a session `s` ended that may have run out by itself. (To the planner of a cluster, sums with time
    /// zones are something that another node may see differently.)
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

/// Which sessions a statement removes that is sent behind ``RecordSessionEnds``.
protocol SessionRemoval: Statement {
    /// The statement that notes them.
    static var noting: SQL<Self> { get }
}

/// Notes the ends of the sessions that `removal` removes, in the same transaction, under the lock of the account's row.
struct RecordSessionEnds<Removal: SessionRemoval>: Statement {
    let removal: Removal

    static var sql: SQL<Self> { "\(Removal.noting, of: \.removal)" }
}

/// The same for the caller's account.
protocol CallersSessionRemoval: AccountWrite {
    /// The statement that notes them.
    static var noting: CallerSQL<Self> { get }
}

/// Notes the ends of the sessions that `removal` removes, in the same transaction.
struct RecordCallersSessionEnds<Removal: CallersSessionRemoval>: AccountWrite {
    typealias Row = ChangedRows

    let removal: Removal

    static var sql: CallerSQL<Self> { "\(Removal.noting, of: \.removal)" }
}

/// How many sessions stay when an account has more than its plan allows.
enum SessionLimit {
    /// Plans of fewer sessions lose no more than they have to.
    static let smallest: Int64 = 32

    /// Returns how many sessions stay, with the one that was just opened, where `limit` are allowed: a quarter fewer, so that
    /// the next log-ins end none. Ending one at each log-in would cost several times as much as the log-in.
    static func kept(of limit: Int64) -> Int64 { limit < smallest ? limit : limit - limit / 4 }
}

/// Finds the account's sessions that have ended, and of the others the least recently used that are too many; locks them.
/// Sent after ``LockAccount``. ``TrimSessions`` ends them: a log-in with the right key is never refused, and no list of
/// forgotten devices keeps a person out.
///
/// The two statements behind it name these rows by their keys. So they read neither the account's other sessions again nor
/// its other events, nor what is left of rows that were removed and not vacuumed yet.
struct FindSurplusSessions: Statement {
    typealias Row = TokenHash

    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp
    /// The session that was just opened: it stays.
    let tokenHash: TokenHash
    /// How many others stay.
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

/// Ends one session of the account; one row when there was such a live one.
///
/// Like every end of a session it queues with the account's writes: when it is told, no write of that session is under
/// way any more.
struct RemoveSession: CallersSessionRemoval {
    typealias Row = SessionID

    let id: SessionID

    private var isDropDue: Bool { SecurityEventLimit.isDue(after: SecurityEventID(id.uuid)) }

    static let noting: CallerSQL<Self> = SessionEnd.noting(isMeant, of: "\(.account)", at: "\(.now)")
    static let sql: CallerSQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(.account)", at: "\(.now)", dropping: "\(\.isDropDue)"))
        RETURNING s.session_id
        """
    private static let isMeant: CallerSQL<Self> = """
        s.session_id = \(\.id) AND \(SessionLiveness.hasNotEnded("s", at: "\(.now)", idleSince: "\(.idleSince)"))
            AND \(Caller.hasLiveSession)
        """
}

/// Ends every session of the account but the caller's.
struct RemoveOtherSessions: CallersSessionRemoval {
    /// Whether it was a live session that its owner knows of, and not one that a recovery opened.
    typealias Row = Bool

    static let noting: CallerSQL<Self> = SessionEnd.noting(
        isMeant, of: "\(.account)", at: SessionEnd.moment(now: "\(.now)", idleSince: "\(.idleSince)"))
    static let sql: CallerSQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(.account)", at: nil))
        RETURNING \(SessionLiveness.isLive("s", at: "\(.now)", idleSince: "\(.idleSince)"))
        """
    private static let isMeant: CallerSQL<Self> = "s.token_hash <> \(.token) AND \(Caller.hasLiveSession)"
}

/// Ends the caller's session.
struct RemoveCurrentSession: CallersSessionRemoval {
    typealias Row = SessionID

    /// Whether events beyond ``SecurityEventLimit`` are removed, too.
    var isDropDue = SecurityEventLimit.isDue()

    static let noting: CallerSQL<Self> = SessionEnd.noting(isMeant, of: "\(.account)", at: "\(.now)")
    static let sql: CallerSQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(.account)", at: "\(.now)", dropping: "\(\.isDropDue)"))
        RETURNING s.session_id
        """
    private static let isMeant: CallerSQL<Self> = "s.token_hash = \(.token) AND \(Caller.hasLiveSession)"
}

/// Ends all sessions of an account, or all but one, on every node at once; a row for each.
struct RemoveAllSessions: SessionRemoval {
    typealias Row = SessionID

    let accountID: AccountID
    /// The session that stays.
    let exception: TokenHash?
    let now: Timestamp

    static let noting: SQL<Self> = SessionEnd.noting(isMeant, of: "\(\.accountID)", at: moment)
    static let sql: SQL<Self> = """
        \(SessionEnd.removing(isMeant, of: "\(\.accountID)", at: moment))
        RETURNING s.session_id
        """
    private static let isMeant: SQL<Self> = "s.token_hash IS DISTINCT FROM \(\.exception)"
    private static let moment: SQL<Self> = "LEAST(\(\.now), s.expires_at)"
}
