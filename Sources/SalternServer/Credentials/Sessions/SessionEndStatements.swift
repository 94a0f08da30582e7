internal import Postgres

/// The part that all statements which end sessions have in common: what ends is noted in the account's security log,
/// with the device's name and when the session began, because its row is its only other record.
enum SessionEnd {
    /// `WITH ended AS (…), noted AS (…), flushed AS (…)`.
    ///
    /// - Parameters:
    ///   - condition: Which sessions `s` end.
    ///   - account: Whose.
    ///   - moment: When the session `e` ended, which may have been before the row is removed.
    static func sql<Root, Context>(
        _ condition: SQLTemplate<Root, Context>, of account: SQLTemplate<Root, Context>,
        at moment: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        """
        WITH ended AS (
            DELETE FROM saltern.sessions s WHERE s.account_id = \(account) AND \(condition)
            RETURNING s.account_id, s.token_hash, s.session_id, s.device_name, s.created_at, s.last_used_at,
                s.expires_at, s.restricted
        ), noted AS (
            INSERT INTO saltern.security_events
                (account_id, occurred_at, event_id, kind, session_id, device_name, since)
            SELECT e.account_id, \(moment), e.session_id, \(SecurityEvent.Kind.sessionEnded), e.session_id,
                e.device_name, e.created_at
            FROM ended e WHERE NOT e.restricted
            ORDER BY 2 DESC LIMIT \(SecurityEventLimit.perKind)
            RETURNING account_id
        ), \(SecurityEventLimit.flushing("\(SecurityEvent.Kind.sessionEnded)", of: account, after: "noted"))
        """
    }

    /// The moment at which a session ended that may have run out by itself.
    /// - Parameters:
    ///   - now: The time.
    ///   - idleSince: The time less the idle timeout.
    static func moment<Root, Context>(
        now: SQLTemplate<Root, Context>, idleSince: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "LEAST(\(now), e.expires_at, e.last_used_at + (\(now)::timestamptz - \(idleSince)::timestamptz))"
    }
}

/// Removes the account's sessions that have ended, and of the others the least recently used that are more than the
/// plan allows: whoever has the right key always gets in, and no list of forgotten devices keeps a person out. Sent after
/// ``LockAccount``.
struct TrimSessions: Statement {
    typealias Row = SessionID

    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp
    /// The session that was just opened: it stays.
    let tokenHash: TokenHash
    /// How many others stay.
    let otherSessions: Int64

    static let sql: SQL<Self> = """
        \(SessionEnd.sql(
            excess, of: "\(\.accountID)", at: SessionEnd.moment(now: "\(\.now)", idleSince: "\(\.idleSince)")))
        SELECT e.session_id FROM ended e
        """
    private static let excess: SQL<Self> = """
        s.token_hash <> \(\.tokenHash) AND (s.expires_at <= \(\.now) OR s.last_used_at <= \(\.idleSince)
            OR s.token_hash IN (
            SELECT o.token_hash FROM saltern.sessions o
            WHERE o.account_id = \(\.accountID) AND o.token_hash <> \(\.tokenHash)
                AND \(SessionLiveness.isLive("o", at: "\(\.now)", idleSince: "\(\.idleSince)"))
            ORDER BY o.last_used_at DESC, o.token_hash OFFSET \(\.otherSessions)))
        """
}

/// Ends one session of the account; one row when there was such a live one.
///
/// Like every end of a session it queues with the account's writes: when it is told, no write of that session is under
/// way any more.
struct RemoveSession: AccountWrite {
    typealias Row = SessionID

    let id: SessionID

    static let sql: CallerSQL<Self> = """
        \(SessionEnd.sql(live, of: "\(.account)", at: "\(.now)"))
        SELECT e.session_id FROM ended e
        """
    private static let live: CallerSQL<Self> = """
        s.session_id = \(\.id) AND \(SessionLiveness.hasNotEnded("s", at: "\(.now)", idleSince: "\(.idleSince)"))
            AND \(Caller.hasLiveSession)
        """
}

/// Ends every session of the account but the caller's.
struct RemoveOtherSessions: AccountWrite {
    /// Whether it was a live session that its owner knows of, and not one that a recovery opened.
    typealias Row = Bool

    static let sql: CallerSQL<Self> = """
        \(SessionEnd.sql(
            "s.token_hash <> \(.token) AND \(Caller.hasLiveSession)", of: "\(.account)",
            at: SessionEnd.moment(now: "\(.now)", idleSince: "\(.idleSince)")))
        SELECT \(SessionLiveness.isLive("e", at: "\(.now)", idleSince: "\(.idleSince)")) FROM ended e
        """
}

/// Ends the caller's session.
struct RemoveCurrentSession: AccountWrite {
    typealias Row = SessionID

    static let sql: CallerSQL<Self> = """
        \(SessionEnd.sql("s.token_hash = \(.token) AND \(Caller.hasLiveSession)", of: "\(.account)", at: "\(.now)"))
        SELECT e.session_id FROM ended e
        """
}

/// Ends all sessions of an account, or all but one, on every node at once; a row for each.
struct RemoveAllSessions: Statement {
    typealias Row = SessionID

    let accountID: AccountID
    /// The session that stays.
    let exception: TokenHash?
    let now: Timestamp

    static let sql: SQL<Self> = """
        \(SessionEnd.sql(
            "s.token_hash IS DISTINCT FROM \(\.exception)", of: "\(\.accountID)",
            at: "LEAST(\(\.now), e.expires_at)"))
        SELECT e.session_id FROM ended e
        """
}
