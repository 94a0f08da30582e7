internal import Postgres

/// Locks and reads the account as the second half of a log-in. Returns no row if the key is wrong, the account is
/// locked, or the credential has changed since the key was compared. ``StoreSession`` follows in the same transaction.
///
/// A change of the credential locks the account's row `FOR UPDATE` before it ends the sessions. The two locks exclude
/// each other, so no session of an old key is opened after the change.
///
/// Costs 75 thousand instructions: the lock, and the keyring and second factor that decision and reply need.
struct OpenSession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let idleSince: Timestamp
    let expiresAt: Timestamp
    /// True if the caller has presented the right key.
    let isPermitted: Bool
    /// The number of the credential that the key was compared with.
    let credentialRevision: Int64

    /// The account's data for the log-in.
    struct Row: Sendable {
        let keyring: [UInt8]?
        let keyringRevision: Int64
        /// The confirmed one-time passwords, if any. ``StoreSession`` then opens nothing, because a code is required.
        let secondFactor: StoredSecondFactor?
        let hasPasskeys: Bool

        /// True if the password key is not sufficient. ``StoreSession`` then opens nothing.
        var needsSecondFactor: Bool { secondFactor != nil || hasPasskeys }
    }

    /// The account as a part of a `WITH`.
    static let account: SQL<Self> = """
        account AS (
            SELECT a.account_id, a.keyring, a.keyring_revision, f.sealed_secret, f.created_at, f.last_step,
                \(hasPasskeys) AS has_passkeys
            FROM saltern.accounts a
            LEFT JOIN saltern.second_factors f ON f.account_id = \(\.accountID) AND f.confirmed_at IS NOT NULL
            WHERE a.account_id = \(\.accountID) AND \(\.isPermitted)
                AND a.credential_revision = \(\.credentialRevision) AND a.locked_at IS NULL
            FOR KEY SHARE OF a
        )
        """

    /// The columns that ``decode(_:)`` reads, of the account `a`.
    static let columns: SQLFragment =
        "a.keyring, a.keyring_revision, a.sealed_secret, a.created_at, a.last_step, a.has_passkeys"

    var bytesInGroup: Int? { 512 }

    static let sql: SQL<Self> = """
        SELECT a.keyring, a.keyring_revision, f.sealed_secret, f.created_at, f.last_step, \(hasPasskeys)
        FROM saltern.accounts a LEFT JOIN saltern.second_factors f ON \(isItsSecondFactor)
        WHERE \(isPermittedAccount)
        FOR KEY SHARE OF a
        """

    /// The condition that the account `a` may be logged in to.
    fileprivate static let isPermittedAccount: SQL<Self> = """
        a.account_id = \(\.accountID) AND \(\.isPermitted)
            AND a.credential_revision = \(\.credentialRevision) AND a.locked_at IS NULL
        """

    /// The condition that `f` is the account's confirmed second factor.
    fileprivate static let isItsSecondFactor: SQL<Self> =
        "f.account_id = \(\.accountID) AND f.confirmed_at IS NOT NULL"

    /// The condition that the account has passkeys.
    fileprivate static let hasPasskeys: SQL<Self> =
        "EXISTS (SELECT FROM saltern.passkeys k WHERE k.account_id = \(\.accountID))"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            keyring: try row.next(), keyringRevision: try row.next(), secondFactor: try StoredSecondFactor(row: &row),
            hasPasskeys: try row.next())
    }
}

/// Stores the session if ``OpenSession`` has found the account without a second factor, and it still has none.
///
/// Costs 85 thousand instructions; a plain INSERT of a session costs 54. `MERGE`, because an INSERT that selects from
/// another table is planned for every shard of a cluster. Both statements together cost as much as a single one with an
/// inserting part. Counting the account's sessions would add half as much again, so ``SessionTally`` limits it.
struct StoreSession: Statement {
    typealias Row = ChangedRows

    let opening: OpenSession

    var bytesInGroup: Int? { 256 }

    static let sql: SQL<Self> = """
        MERGE INTO saltern.sessions n USING (
            SELECT a.account_id FROM saltern.accounts a
            WHERE \(OpenSession.isPermittedAccount, of: \.opening) AND NOT EXISTS (
                SELECT FROM saltern.second_factors f WHERE \(OpenSession.isItsSecondFactor, of: \.opening))
                AND NOT \(OpenSession.hasPasskeys, of: \.opening)
        ) s ON n.account_id = s.account_id AND n.token_hash = \(\.opening.tokenHash)
        WHEN NOT MATCHED THEN INSERT
            (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at)
            VALUES (s.account_id, \(\.opening.tokenHash), \(\.opening.sessionID), \(\.opening.deviceName?.string),
                \(\.opening.now), \(\.opening.now), \(\.opening.expiresAt))
        """
}

/// Counts an account's sessions and reads the plan's limit.
struct CountSessions: Statement {
    let accountID: AccountID
    let now: Timestamp
    let idleSince: Timestamp

    struct Row: Sendable {
        /// Includes sessions that have ended.
        let stored: Int64
        let live: Int64
        let limit: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT count(s.token_hash),
            count(*) FILTER (WHERE \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))),
            p.max_sessions
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        LEFT JOIN saltern.sessions s ON s.account_id = \(\.accountID)
        WHERE a.account_id = \(\.accountID)
        GROUP BY p.plan
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(stored: try row.next(), live: try row.next(), limit: try row.next())
    }
}

/// Opens the account's first session, as the last of a registration's three statements.
struct InsertSession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let expiresAt: Timestamp
    /// The passkey that opens the session, alone or as the second factor.
    var passkey: PasskeyHash?

    static let sql: SQL<Self> = """
        INSERT INTO saltern.sessions
            (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at, passkey_hash)
        VALUES (\(\.accountID), \(\.tokenHash), \(\.sessionID), \(\.deviceName?.string), \(\.now), \(\.now),
            \(\.expiresAt), \(\.passkey))
        """
}
