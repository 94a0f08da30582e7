internal import Postgres

/// The part that all statements which end sessions have in common: what ends is noted in the account's security log,
/// with the device's name and when the session began, because its row is its only other record.
enum SessionEnd {
    /// `WITH ended AS (…), noted AS (…)`, for a statement that names the account $1.
    ///
    /// - Parameters:
    ///   - condition: Which sessions `s` end.
    ///   - moment: When the session `e` ended, which may have been before the row is removed.
    static func sql(_ condition: String, at moment: String) -> String {
        """
        WITH ended AS (
            DELETE FROM saltern.sessions s WHERE s.account_id = $1 AND \(condition)
            RETURNING s.account_id, s.token_hash, s.session_id, s.device_name, s.created_at, s.last_used_at,
                s.expires_at, s.restricted
        ), noted AS (
            INSERT INTO saltern.security_events
                (account_id, occurred_at, event_id, kind, session_id, device_name, since)
            SELECT e.account_id, \(moment), e.session_id, 'session_ended', e.session_id, e.device_name, e.created_at
            FROM ended e WHERE NOT e.restricted
        )
        """
    }

    /// The moment at which a session ended that may have run out by itself.
    /// - Parameters:
    ///   - now: The parameter that holds the time.
    ///   - idleSince: The one that holds the time less the idle timeout.
    static func moment(now: String, idleSince: String) -> String {
        "LEAST(\(now), e.expires_at, e.last_used_at + (\(now)::timestamptz - \(idleSince)::timestamptz))"
    }
}

/// Removes the account's sessions that have ended, and of the others the least recently used that are more than the
/// plan allows: whoever has the right key always gets in, and no list of forgotten devices keeps a person out.
struct TrimSessions: Statement {
    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp
    /// The session that was just opened: it stays.
    let tokenHash: TokenHash
    /// How many others stay.
    let otherSessions: Int64

    static let sql = """
        \(SessionEnd.sql(excess, at: SessionEnd.moment(now: "$2", idleSince: "$3")))
        SELECT e.session_id FROM ended e
        """
    private static let excess = """
        s.token_hash <> $4 AND (s.expires_at <= $2 OR s.last_used_at <= $3 OR s.token_hash IN (
            SELECT o.token_hash FROM saltern.sessions o
            WHERE o.account_id = $1 AND o.token_hash <> $4 AND o.expires_at > $2 AND o.last_used_at > $3
                AND NOT o.restricted
            ORDER BY o.last_used_at DESC, o.token_hash OFFSET $5))
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(now)
        parameters.append(idleSince)
        parameters.append(tokenHash)
        parameters.append(otherSessions)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> SessionID { try row.next() }
}

/// Ends one session of the account; one row when there was such a live one.
///
/// Like every end of a session it queues with the account's writes: when it is told, no write of that session is under
/// way any more.
struct RemoveSession: AccountWrite {
    let id: SessionID

    static let locksAccount = true
    static let sql = """
        \(SessionEnd.sql(
            "s.session_id = $5 AND s.expires_at > $3 AND s.last_used_at > $4 AND \(Caller.hasLiveSession)", at: "$3"))
        SELECT e.session_id FROM ended e
        """

    func bind(to parameters: inout Parameters) { parameters.append(id) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> SessionID { try row.next() }
}

/// Ends every session of the account but the caller's.
struct RemoveOtherSessions: AccountWrite {
    static let locksAccount = true
    static let sql = """
        \(SessionEnd.sql(
            "s.token_hash <> $2 AND \(Caller.hasLiveSession)", at: SessionEnd.moment(now: "$3", idleSince: "$4")))
        SELECT e.expires_at > $3 AND e.last_used_at > $4 FROM ended e
        """

    /// Whether the session was still live.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}

/// Ends the caller's session.
struct RemoveCurrentSession: AccountWrite {
    static let locksAccount = true
    static let sql = """
        \(SessionEnd.sql("s.token_hash = $2 AND \(Caller.hasLiveSession)", at: "$3"))
        SELECT e.session_id FROM ended e
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> SessionID { try row.next() }
}

/// Ends all sessions of an account, or all but one, on every node at once; a row for each.
struct RemoveAllSessions: Statement {
    let accountID: AccountID
    /// The session that stays.
    let exception: TokenHash?
    let now: Timestamp

    static let sql = """
        \(SessionEnd.sql("s.token_hash IS DISTINCT FROM $2", at: "LEAST($3, e.expires_at)"))
        SELECT e.session_id FROM ended e
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(exception)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> SessionID { try row.next() }
}
