internal import Postgres

/// Sets or replaces the recovery key; no row when it is set already, with the same keyring. The account's row was locked
/// before.
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

/// Replaces what the recovery code opens. The account's row was locked before.
struct ReplaceRecoveryKeyring: Statement {
    let accountID: AccountID
    let keyring: Keyring

    static let sql: SQL<Self> = """
        UPDATE saltern.recoveries r SET keyring = \(\.keyring.bytes) WHERE r.account_id = \(\.accountID)
        """
}

/// Removes the recovery key; no row when there was none.
struct DeleteRecovery: Statement {
    typealias Row = AccountID

    let accountID: AccountID

    static let sql: SQL<Self> =
        "DELETE FROM saltern.recoveries r WHERE r.account_id = \(\.accountID) RETURNING r.account_id"
}

/// Ends what recoveries have opened.
struct RemoveRestrictedSessions: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.sessions s WHERE s.account_id = \(\.accountID) AND s.restricted"
}

/// What a recovery key is compared with.
struct FindRecovery: Statement {
    typealias Row = Verifier

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT r.verifier FROM saltern.recoveries r WHERE r.account_id = \(\.accountID)"
}

/// Locks the account of a recovery until the transaction ends, when its key was right: a removal of the key and a change
/// of the credential come wholly before it or wholly after it. Whoever has a wrong key holds up nobody.
struct LockRecoveringAccount: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let isPermitted: Bool

    static let sql: SQL<Self> = """
        SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = \(\.accountID)
            AND \(\.isPermitted) FOR NO KEY UPDATE
        """
}

/// Uses a recovery key for a restricted session, and removes an earlier one; no row when the key was wrong or is not the
/// account's any more, or the account is locked. Sent after ``LockRecoveringAccount``, so that its snapshot shows what the
/// change before it left. ``StoreRecoverySession``, an event for the account's owner and ``DropOldEvents`` follow.
struct OpenRecoverySession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let expiresAt: Timestamp
    /// Whether the caller has shown the right key.
    let isPermitted: Bool
    /// What it was compared with.
    let verifier: Verifier
    /// Noted in the account's row, so that what follows knows whether this was done.
    let writer = Int64.random(in: .min ... .max)

    struct Row: Sendable {
        /// Sealed under the recovery key.
        let keyring: [UInt8]?
        /// Of the account's own keyring; nil when there is none.
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

/// Stores the session that ``OpenRecoverySession`` opens, and nothing when it opens none.
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

/// Notes which restricted session has set the credential that is now in force, for as long as that session would have
/// lasted: its request may come again after a lost reply.
struct CompleteRecovery: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let expiresAt: Timestamp
    /// The credential that was set.
    let credentialRevision: Int64

    static let sql: SQL<Self> = """
        UPDATE saltern.recoveries r
        SET completed_token_hash = \(\.tokenHash), completed_until = \(\.expiresAt),
            completed_revision = \(\.credentialRevision) WHERE r.account_id = \(\.accountID)
        """
}

/// The account whose present credential the caller's restricted session has set, before it ended.
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
