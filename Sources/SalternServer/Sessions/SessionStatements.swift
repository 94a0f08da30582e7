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

    static let isReadOnly = true
    static let sql = """
        SELECT s.last_used_at <= $5
        FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = $1 AND s.token_hash = $2 AND s.expires_at > $3 AND s.last_used_at > $4
            AND NOT s.restricted AND a.account_id = $1 AND a.locked_at IS NULL
        """

    func bind(to parameters: inout Parameters) {
        caller.bind(to: &parameters)
        parameters.append(caller.now - touchInterval)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> LiveSession {
        LiveSession(isTouchDue: try row.next())
    }
}

/// Finds the caller's session like ``Authenticate``, and locks the account's row until the transaction ends.
///
/// The statement that follows has a snapshot of its own, taken after the lock: it sees what the last writer left.
/// (In one statement with the lock, the rows of other tables would be those from before the wait.)
struct AuthenticateForWrite: Statement {
    let caller: Caller
    let touchInterval: Duration

    static let sql = Authenticate.sql + "\nFOR NO KEY UPDATE OF a"

    func bind(to parameters: inout Parameters) {
        caller.bind(to: &parameters)
        parameters.append(caller.now - touchInterval)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> LiveSession {
        LiveSession(isTouchDue: try row.next())
    }
}

/// Records that a session was used.
struct TouchSession: Statement {
    let caller: Caller
    let touchInterval: Duration

    static let sql = """
        UPDATE saltern.sessions SET last_used_at = $3
        WHERE account_id = $1 AND token_hash = $2 AND expires_at > $3 AND last_used_at > $4 AND last_used_at <= $5
        """

    func bind(to parameters: inout Parameters) {
        caller.bind(to: &parameters)
        parameters.append(caller.now - touchInterval)
    }
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

        /// Whether ``TrimSessions`` has something to remove.
        var needsTrimming: Bool { storedSessions > liveSessions || liveSessions >= sessionLimit }
    }

    /// The account, for a statement whose first nine parameters are these.
    static let account = """
        account AS (
            SELECT a.account_id, a.keyring, a.keyring_revision, n.stored_sessions, n.live_sessions,
                (SELECT p.max_sessions FROM saltern.plans p WHERE p.plan = a.plan) AS max_sessions,
                f.sealed_secret, f.created_at, f.last_step
            FROM saltern.accounts a CROSS JOIN (
                SELECT count(*) AS stored_sessions,
                    count(*) FILTER (WHERE s.expires_at > $5 AND s.last_used_at > $6 AND NOT s.restricted)
                        AS live_sessions
                FROM saltern.sessions s WHERE s.account_id = $1
            ) n LEFT JOIN saltern.second_factors f ON f.account_id = $1 AND f.confirmed_at IS NOT NULL
            WHERE a.account_id = $1 AND $8 AND a.credential_revision = $9 AND a.locked_at IS NULL
            FOR KEY SHARE OF a
        )
        """

    /// The session, of the account `a`.
    static let insertion = """
        INSERT INTO saltern.sessions
            (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at)
        SELECT a.account_id, $2, $3, $4, $5, $5, $7 FROM account a
        """

    /// What ``decode(_:)`` reads, of the account `a`.
    static let columns = """
        a.stored_sessions, a.live_sessions, a.max_sessions, a.keyring, a.keyring_revision, \
        a.sealed_secret, a.created_at, a.last_step
        """

    static let sql = """
        WITH \(account), opened AS (
            \(insertion) WHERE a.sealed_secret IS NULL
        )
        SELECT \(columns) FROM account a
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(tokenHash)
        parameters.append(sessionID)
        parameters.append(deviceName?.string)
        parameters.append(now)
        parameters.append(idleSince)
        parameters.append(expiresAt)
        parameters.append(isPermitted)
        parameters.append(credentialRevision)
    }

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

    static let sql = """
        SELECT session_id, device_name, created_at, last_used_at, expires_at, token_hash = $2
        FROM saltern.sessions
        WHERE account_id = $1 AND expires_at > $3 AND last_used_at > $4 AND NOT restricted
        ORDER BY created_at, session_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(tokenHash)
        parameters.append(now)
        parameters.append(idleSince)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            id: try row.next(), deviceName: try row.next(), createdAt: try row.next(), lastUsedAt: try row.next(),
            expiresAt: try row.next(), isCurrent: try row.next())
    }
}
