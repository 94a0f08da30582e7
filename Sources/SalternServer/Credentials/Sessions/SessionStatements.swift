internal import Postgres

/// A session that was found to be live.
struct LiveSession: Sendable {
    /// Whether its last use was recorded long enough ago to be recorded again.
    let isTouchDue: Bool
}

/// Finds the caller's session, when it is live and not restricted, and its account is not locked.
struct Authenticate: Statement {
    let caller: Caller
    let touchInterval: Duration

    private var touchBefore: Timestamp { caller.now - touchInterval }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT s.last_used_at <= \(\.touchBefore)
        FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = \(\.caller.accountID) AND s.token_hash = \(\.caller.tokenHash)
            AND s.expires_at > \(\.caller.now) AND s.last_used_at > \(\.caller.idleSince)
            AND NOT s.restricted AND a.account_id = \(\.caller.accountID) AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> LiveSession {
        LiveSession(isTouchDue: try row.next())
    }
}

/// Finds the caller's session like ``Authenticate``, and locks the account's row until the transaction ends.
///
/// The statement that follows has a snapshot of its own, taken after the lock: it sees what the last writer left.
/// (In one statement with the lock, the rows of other tables would be those from before the wait.)
struct AuthenticateForWrite: Statement {
    private let authenticate: Authenticate

    init(caller: Caller, touchInterval: Duration) {
        authenticate = Authenticate(caller: caller, touchInterval: touchInterval)
    }

    static let sql: SQL<Self> = """
        \(Authenticate.sql, of: \.authenticate)
        FOR NO KEY UPDATE OF a
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> LiveSession {
        LiveSession(isTouchDue: try row.next())
    }
}

/// Records that a session was used, unless somebody has locked it at this moment: it waits for nobody.
struct TouchSession: Statement {
    let caller: Caller
    let touchInterval: Duration

    private var touchBefore: Timestamp { caller.now - touchInterval }

    static let sql: SQL<Self> = """
        UPDATE saltern.sessions t SET last_used_at = \(\.caller.now)
        WHERE t.account_id = \(\.caller.accountID) AND t.token_hash = (
            SELECT s.token_hash FROM saltern.sessions s
            WHERE s.account_id = \(\.caller.accountID) AND s.token_hash = \(\.caller.tokenHash)
                AND s.expires_at > \(\.caller.now) AND s.last_used_at > \(\.caller.idleSince)
                AND s.last_used_at <= \(\.touchBefore)
            FOR UPDATE SKIP LOCKED)
        """
}

/// The second half of a login: opens a session, unless the key was wrong, the account is locked, its credential was
/// changed since the key was compared, or it has a second factor.
///
/// Whoever changes a credential locks the account's row `FOR UPDATE` before ending its sessions. That waits for the lock
/// taken here, and this lock waits for that one: no session of an old key comes after the change.
struct OpenSession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let idleSince: Timestamp
    let expiresAt: Timestamp
    /// Whether the caller has shown the right key.
    let isPermitted: Bool
    /// The credential that the key was compared with.
    let credentialRevision: Int64

    /// What became of the login; there is no row when the key was wrong or the account is locked.
    struct Row: Sendable {
        /// Sessions before this one, with those that have ended.
        let storedSessions: Int64
        let liveSessions: Int64
        let sessionLimit: Int64
        let keyring: [UInt8]?
        let keyringRevision: Int64
        /// When the account has one that counts. Then ``OpenSession`` has opened nothing yet: a code is needed.
        let secondFactor: StoredSecondFactor?

        /// Whether so many sessions are stored that none was opened: ``TrimSessions`` goes first.
        var isFull: Bool { storedSessions >= sessionLimit + Int64(OpenSession.allowance) }

        /// Whether ``TrimSessions`` has something to remove.
        var needsTrimming: Bool { storedSessions > liveSessions || liveSessions >= sessionLimit }
    }

    /// How many sessions more than the plan allows may be stored until ``TrimSessions`` has ended the oldest. Beyond it
    /// nothing is opened.
    static let allowance = 8

    /// The account, as a part of a `WITH`.
    static let account: SQL<Self> = """
        account AS (
            SELECT a.account_id, a.keyring, a.keyring_revision, n.stored_sessions, n.live_sessions,
                (SELECT p.max_sessions FROM saltern.plans p WHERE p.plan = a.plan) AS max_sessions,
                f.sealed_secret, f.created_at, f.last_step
            FROM saltern.accounts a CROSS JOIN (
                SELECT count(*) AS stored_sessions,
                    count(*) FILTER (WHERE s.expires_at > \(\.now) AND s.last_used_at > \(\.idleSince)
                        AND NOT s.restricted)
                        AS live_sessions
                FROM saltern.sessions s WHERE s.account_id = \(\.accountID)
            ) n LEFT JOIN saltern.second_factors f ON f.account_id = \(\.accountID) AND f.confirmed_at IS NOT NULL
            WHERE a.account_id = \(\.accountID) AND \(\.isPermitted)
                AND a.credential_revision = \(\.credentialRevision) AND a.locked_at IS NULL
            FOR KEY SHARE OF a
        )
        """

    /// The session, of the account `a`.
    static let insertion: SQL<Self> = """
        INSERT INTO saltern.sessions
            (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at)
        SELECT a.account_id, \(\.tokenHash), \(\.sessionID), \(\.deviceName?.string), \(\.now), \(\.now),
            \(\.expiresAt) FROM account a
        """

    /// What ``decode(_:)`` reads, of the account `a`.
    static let columns: SQLFragment = """
        a.stored_sessions, a.live_sessions, a.max_sessions, a.keyring, a.keyring_revision, \
        a.sealed_secret, a.created_at, a.last_step
        """

    static let sql: SQL<Self> = """
        WITH \(account), opened AS (
            \(insertion) WHERE a.sealed_secret IS NULL AND a.stored_sessions < a.max_sessions + \(allowance)
        )
        SELECT \(columns) FROM account a
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            storedSessions: try row.next(), liveSessions: try row.next(), sessionLimit: try row.next(),
            keyring: try row.next(), keyringRevision: try row.next(), secondFactor: try StoredSecondFactor(row: &row))
    }
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
        SELECT session_id, device_name, created_at, last_used_at, expires_at, token_hash = \(\.tokenHash)
        FROM saltern.sessions
        WHERE account_id = \(.account) AND expires_at > \(\.now) AND last_used_at > \(\.idleSince) AND NOT restricted
        ORDER BY created_at, session_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
