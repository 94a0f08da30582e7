internal import Postgres

/// Takes the userid, as the first of a registration's three statements. Fails with a unique violation if the userid is
/// taken.
struct InsertLogin: Statement {
    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32

    /// The table's default value.
    static let deviceGeneration: Int64 = 1
    static let sql: SQL<Self> = """
        INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations)
            VALUES (\(\.userid.string), \(\.accountID), \(\.verifier), \(\.kdfIterations))
        """

    /// Returns true if an error means that the userid is taken. The statement inserts only one unique value; on a
    /// cluster the error does not name the constraint.
    static func isUseridTaken(_ error: PostgresError) -> Bool {
        error.sqlState == .uniqueViolation && error.isOf(Self.self)
    }
}

/// Creates the account, as the second of a registration's three statements.
struct InsertAccount: Statement {
    let accountID: AccountID
    let userid: Userid
    let keyring: Keyring?
    let now: Timestamp
    /// The invite that was used up for it.
    var invite: ConsumeInvite.Row?

    private var keyringRevision: Int64 { keyring == nil ? 0 : 1 }

    static let sql: SQL<Self> = """
        INSERT INTO saltern.accounts (account_id, userid, keyring, keyring_revision, created_at, plan, invite_id)
        VALUES (\(\.accountID), \(\.userid.string), \(\.keyring?.bytes), \(\.keyringRevision), \(\.now),
            coalesce(\(\.invite?.plan), 'default'), \(\.invite?.id))
        """
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

/// Finds the account with its plan and usage.
struct FindAccount: AccountRead {
    let now: Timestamp
    let idleSince: Timestamp

    struct Row: Sendable {
        let userid: String
        let plan: String
        let createdAt: Timestamp
        let revisionBase: Int64
        let limits: AccountPlan.Limits
        let items: Int64
        let bytes: Int64
        /// Number and sealed bytes of deleted items that can be restored.
        let deletedItems: Int64
        let deletedBytes: Int64
        /// Number and sealed bytes of older versions of items.
        let versions: Int64
        let versionBytes: Int64
        let sessions: Int64
        let shares: Int64
        let vaults: Int64
        let memberships: Int64
        let hasSecondFactor: Bool
        /// Unused recovery codes of the second factor.
        let recoveryCodes: Int64
        /// The time at which the recovery key was set. Nil without one.
        let recoverySetAt: Timestamp?
        /// Nil without a receipt.
        let receiptUpdatedAt: Timestamp?
    }

    static let sql: AccountSQL<Self> = """
        SELECT a.userid, a.plan, a.created_at, \(AccountCounter.base), \(AccountPlan.Limits.columns),
            a.item_count, a.item_bytes,
            a.kept_count, a.kept_bytes, a.version_count, a.version_bytes,
            (
                SELECT count(*) FROM saltern.sessions s
                WHERE s.account_id = \(.account)
                    AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
            ), \(ShareCount.sql(of: "\(.account)", at: "\(\.now)")),
            \(MembershipCount.sql(of: "\(.account)")),
            EXISTS (SELECT FROM saltern.second_factors f WHERE f.account_id = \(.account)
                AND f.confirmed_at IS NOT NULL),
            (SELECT count(*) FROM saltern.second_factor_codes c WHERE c.account_id = \(.account)),
            (SELECT r.created_at FROM saltern.recoveries r WHERE r.account_id = \(.account)),
            (SELECT r.updated_at FROM saltern.receipts r WHERE r.account_id = \(.account))
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            userid: try row.next(), plan: try row.next(), createdAt: try row.next(), revisionBase: try row.next(),
            limits: try AccountPlan.Limits(row: &row),
            items: try row.next(), bytes: try row.next(), deletedItems: try row.next(), deletedBytes: try row.next(),
            versions: try row.next(), versionBytes: try row.next(),
            sessions: try row.next(), shares: try row.next(),
            vaults: try row.next(), memberships: try row.next(), hasSecondFactor: try row.next(),
            recoveryCodes: try row.next(), recoverySetAt: try row.next(),
            receiptUpdatedAt: try row.next())
    }
}
