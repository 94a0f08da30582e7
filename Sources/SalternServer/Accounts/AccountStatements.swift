internal import Postgres

/// Registration, first of three: takes the userid. Fails with a unique violation when somebody has it.
struct InsertLogin: Statement {
    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32

    static let sql = """
        INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations) VALUES ($1, $2, $3, $4)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(userid.string)
        parameters.append(accountID)
        parameters.append(verifier)
        parameters.append(kdfIterations)
    }

    /// Whether an error says that the userid is taken. (On Citus the constraint's name ends in a shard's number.)
    static func isUseridTaken(_ error: PostgresError) -> Bool {
        error.sqlState == .uniqueViolation && error.constraint?.hasPrefix("logins_pkey") == true
    }
}

/// Registration, second of three.
struct InsertAccount: Statement {
    let accountID: AccountID
    let userid: Userid
    let keyring: Keyring?
    let now: Timestamp
    /// The invite that was used for it.
    var invite: ConsumeInvite.Row?

    static let sql = """
        INSERT INTO saltern.accounts (account_id, userid, keyring, keyring_revision, created_at, plan, invite_id)
        VALUES ($1, $2, $3, $4, $5, coalesce($6, 'default'), $7)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(userid.string)
        parameters.append(keyring?.bytes)
        parameters.append(keyring == nil ? 0 as Int64 : 1)
        parameters.append(now)
        parameters.append(invite?.plan)
        parameters.append(invite?.id)
    }
}

/// Registration, third of three: the account's first session.
struct InsertSession: Statement {
    let accountID: AccountID
    let tokenHash: TokenHash
    let sessionID: SessionID
    let deviceName: DeviceName?
    let now: Timestamp
    let expiresAt: Timestamp

    static let sql = """
        INSERT INTO saltern.sessions
            (account_id, token_hash, session_id, device_name, created_at, last_used_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $5, $6)
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(tokenHash)
        parameters.append(sessionID)
        parameters.append(deviceName?.string)
        parameters.append(now)
        parameters.append(expiresAt)
    }
}

/// The account with its plan and how much of it is used.
struct FindAccount: AccountRead {
    let now: Timestamp
    let idleSince: Timestamp

    struct Row: Sendable {
        let userid: String
        let plan: String
        let createdAt: Timestamp
        let limits: Limits
        let items: Int64
        let bytes: Int64
        let sessions: Int64
        let shares: Int64
        let hasSecondFactor: Bool
        /// Those of the second factor that were not used yet.
        let recoveryCodes: Int64
        /// When the recovery key was set; nil when there is none.
        let recoverySetAt: Timestamp?
        /// Nil when there is no receipt.
        let receiptUpdatedAt: Timestamp?
    }

    struct Limits: Sendable {
        let items: Int64
        let itemBytes: Int64
        let bytes: Int64
        let sessions: Int64
        let shares: Int64
        /// How long a deleted item can be restored.
        let deletedDays: Int32
    }

    static let sql = """
        SELECT a.userid, a.plan, a.created_at, p.max_items, p.max_item_bytes, p.max_bytes, p.max_sessions,
            p.max_shares, p.deleted_days, a.item_count, a.item_bytes,
            (
                SELECT count(*) FROM saltern.sessions s
                WHERE s.account_id = $1 AND s.expires_at > $2 AND s.last_used_at > $3 AND NOT s.restricted
            ), \(ShareCount.sql(at: "$2")),
            EXISTS (SELECT FROM saltern.second_factors f WHERE f.account_id = $1 AND f.confirmed_at IS NOT NULL),
            (SELECT count(*) FROM saltern.second_factor_codes c WHERE c.account_id = $1),
            (SELECT r.created_at FROM saltern.recoveries r WHERE r.account_id = $1),
            (SELECT r.updated_at FROM saltern.receipts r WHERE r.account_id = $1)
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = $1
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(idleSince)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            userid: try row.next(), plan: try row.next(), createdAt: try row.next(),
            limits: Limits(
                items: try row.next(), itemBytes: try row.next(), bytes: try row.next(), sessions: try row.next(),
                shares: try row.next(), deletedDays: try row.next()),
            items: try row.next(), bytes: try row.next(), sessions: try row.next(), shares: try row.next(),
            hasSecondFactor: try row.next(), recoveryCodes: try row.next(), recoverySetAt: try row.next(),
            receiptUpdatedAt: try row.next())
    }
}
