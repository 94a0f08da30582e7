internal import Postgres

/// Sets or replaces the recovery key. Returns no row if key and keyring are already set. The account's row must be
/// locked.
struct WriteRecovery: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let verifier: Verifier
    let keyring: Keyring?
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.recoveries AS r (account_id, verifier, keyring, created_at)
            VALUES (\(\.accountID), \(\.verifier), \(\.keyring?.bytes), \(\.now))
        ON CONFLICT (account_id) DO UPDATE
        SET verifier = excluded.verifier, keyring = excluded.keyring, created_at = excluded.created_at,
            last_used_at = NULL, completed_token_hash = NULL, completed_until = NULL, completed_revision = NULL
        WHERE r.verifier <> excluded.verifier OR r.keyring IS DISTINCT FROM excluded.keyring
        RETURNING r.account_id
        """
}

/// Replaces the recovery keyring. The account's row must be locked.
struct ReplaceRecoveryKeyring: Statement {
    let accountID: AccountID
    let keyring: Keyring

    static let sql: SQL<Self> = """
        UPDATE saltern.recoveries r SET keyring = \(\.keyring.bytes) WHERE r.account_id = \(\.accountID)
        """
}

/// Removes the recovery key. Returns no row if there was none.
struct DeleteRecovery: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.recoveries r WHERE r.account_id = \(\.accountID) RETURNING r.account_id"
}

/// Ends the restricted sessions of recoveries.
struct RemoveRestrictedSessions: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.sessions s WHERE s.account_id = \(\.accountID) AND s.restricted"
}

/// Finds the verifier of the recovery key.
struct FindRecovery: Statement {
    typealias Row = Verifier

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT r.verifier FROM saltern.recoveries r WHERE r.account_id = \(\.accountID)"
}

/// Locks the account of a recovery with the right key until the transaction ends. A removal of the key or a change of
/// the credential then comes entirely before or after it. A wrong key locks nothing.
struct LockRecoveringAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let isPermitted: Bool

    static let sql: SQL<Self> = """
        SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID)
            AND \(\.isPermitted) FOR NO KEY UPDATE
        """
}

/// Uses a recovery key: opens a restricted session and ends an earlier one. Returns no row if the key is wrong or
/// replaced, or the account is locked.
///
/// It follows ``LockRecoveringAccount``, so its snapshot includes the previous change. ``StoreRecoverySession``, an
/// event for the account's owner and ``DropOldEvents`` follow.
struct OpenRecoverySession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let expiresAt: Timestamp
    /// True if the caller has presented the right key.
    let isPermitted: Bool
    /// The verifier that the key was compared with.
    let verifier: Verifier
    /// Stored in the account's row as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    struct Row: Sendable {
        /// The keyring sealed under the recovery key.
        let keyring: [UInt8]?
        /// The revision of the account's own keyring. Nil without one.
        let keyringRevision: Int64?
    }

    static let sql: SQL<Self> = """
        WITH recovery AS (
            SELECT r.account_id, r.keyring, CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END AS revision
            FROM saltern.recoveries r JOIN saltern.accounts a ON a.account_id = r.account_id
            WHERE r.account_id = \(\.accountID) AND a.account_id = \(\.accountID) AND \(\.isPermitted)
                AND r.verifier = \(\.verifier) AND a.locked_at IS NULL
        ), replaced AS (
            DELETE FROM saltern.sessions s USING recovery r WHERE s.account_id = \(\.accountID) AND s.restricted
        ), used AS (
            UPDATE saltern.recoveries u SET last_used_at = \(\.now) FROM recovery r WHERE u.account_id = \(\.accountID)
        ), told AS (
            UPDATE saltern.accounts t SET writer = \(\.writer) FROM recovery r WHERE t.account_id = \(\.accountID)
        )
        SELECT r.keyring, r.revision FROM recovery r
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores the session that ``OpenRecoverySession`` opens, if it opens one.
///
/// `MERGE`, because an INSERT that selects from another table is planned for every shard of a cluster.
struct StoreRecoverySession: Statement {
    let opening: OpenRecoverySession

    static let sql: SQL<Self> = """
        MERGE INTO saltern.sessions n USING (
            SELECT a.account_id FROM saltern.accounts a
            WHERE a.account_id = \(\.opening.accountID) AND a.writer = \(\.opening.writer)
        ) s ON n.account_id = s.account_id AND n.token_hash = \(\.opening.tokenHash)
        WHEN NOT MATCHED THEN INSERT
            (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at, restricted)
            VALUES (s.account_id, \(\.opening.tokenHash), \(\.opening.sessionID), \(\.opening.deviceName?.string),
                \(\.opening.now), \(\.opening.now), \(\.opening.expiresAt), true)
        """
}

/// Records the restricted session that set the present credential, until that session would have expired. Its request
/// may be repeated after a lost reply.
struct CompleteRecovery: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let expiresAt: Timestamp
    /// The number of the credential that was set.
    let credentialRevision: Int64

    static let sql: SQL<Self> = """
        UPDATE saltern.recoveries r
        SET completed_token_hash = \(\.tokenHash), completed_until = \(\.expiresAt),
            completed_revision = \(\.credentialRevision) WHERE r.account_id = \(\.accountID)
        """
}

/// Finds the account whose present credential the caller's restricted session set before it ended.
struct FindCompletedRecovery: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let now: Timestamp

    struct Row: Sendable {
        let userid: Userid
        let credentialRevision: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.userid, a.credential_revision
        FROM saltern.recoveries r JOIN saltern.accounts a ON a.account_id = r.account_id
        WHERE r.account_id = \(\.accountID) AND a.account_id = \(\.accountID)
            AND r.completed_token_hash = \(\.tokenHash) AND r.completed_until > \(\.now)
            AND r.completed_revision = a.credential_revision AND a.locked_at IS NULL
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
