internal import Postgres

/// Finds the account's keyring and recovery keyring, and the numbers that decide if they are kept.
struct FindReplaceableKeyrings: AccountRead {
    typealias Row = ReplaceableKeyrings

    let now: Timestamp

    static let sql: AccountSQL<Self> = """
        SELECT a.keyring, a.keyring_revision,
            (SELECT r.keyring FROM saltern.recoveries r WHERE r.account_id = \(.account)),
            p.deleted_days,
            (
                SELECT count(*) FROM saltern.kept_keyrings k
                WHERE k.account_id = \(.account) AND NOT k.proven AND k.expires_at > \(\.now)
            )
        FROM saltern.accounts a JOIN saltern.plans p ON p.plan = a.plan
        WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the account's kept keyrings that have not expired, in the order of their replacement.
struct FindKeptKeyrings: AccountRead {
    typealias Row = KeptKeyring

    let now: Timestamp

    static let sql: AccountSQL<Self> = """
        SELECT k.kept_id, k.keyring, k.keyring_revision, k.recovery_keyring, k.proven, k.replaced_at, k.expires_at
        FROM saltern.kept_keyrings k
        WHERE k.account_id = \(.account) AND k.expires_at > \(\.now)
        ORDER BY k.replaced_at, k.keyring_revision, k.kept_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores a kept keyring. The account's row must be locked.
struct InsertKeptKeyring: Statement {
    let accountID: AccountID
    let kept: KeptKeyring

    static let sql: SQL<Self> = """
        INSERT INTO saltern.kept_keyrings
            (account_id, kept_id, keyring, keyring_revision, recovery_keyring, proven, replaced_at, expires_at)
            VALUES (\(\.accountID), \(\.kept.id), \(\.kept.keyring), \(\.kept.revision), \(\.kept.recoveryKeyring),
                \(\.kept.isProven), \(\.kept.replacedAt), \(\.kept.expiresAt))
        """
}

/// Removes an account's expired kept keyrings, and those that were replaced with the password key if another one takes
/// their slot.
struct DropKeptKeyrings: Statement {
    let accountID: AccountID
    let now: Timestamp
    let dropsProven: Bool

    static let sql: SQL<Self> = """
        DELETE FROM saltern.kept_keyrings k
        WHERE k.account_id = \(\.accountID) AND (k.expires_at <= \(\.now) OR k.proven AND \(\.dropsProven))
        """
}

/// Removes all kept keyrings of an account, because a credential or data keys that they depend on were replaced.
struct RemoveKeptKeyrings: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.kept_keyrings k WHERE k.account_id = \(\.accountID)"
}

/// Removes the recovery keyrings of an account's kept keyrings, because the recovery code was replaced or removed.
struct RemoveKeptRecoveryKeyrings: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.kept_keyrings d WHERE d.account_id = \(\.accountID) AND d.keyring IS NULL
        )
        UPDATE saltern.kept_keyrings k SET recovery_keyring = NULL
        WHERE k.account_id = \(\.accountID) AND k.keyring IS NOT NULL AND k.recovery_keyring IS NOT NULL
        """
}

/// Finds expired kept keyrings of all accounts, earliest expiry first, by the index `kept_keyrings_by_expiry`.
struct FindExpiredKeyrings: Statement {
    typealias Row = DueRow<KeptKeyringID>

    let now: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT k.account_id, k.kept_id FROM saltern.kept_keyrings k
        WHERE k.expires_at <= \(\.now) AND k.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY k.expires_at LIMIT \(\.limit)
        """
}

/// Removes expired kept keyrings of an account. Returns their number.
struct RemoveExpiredKeyrings: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let now: Timestamp
    let ids: [KeptKeyringID]

    static let sql: SQL<Self> = """
        WITH gone AS (
            DELETE FROM saltern.kept_keyrings k
            WHERE k.account_id = \(\.accountID) AND k.kept_id = ANY(\(\.ids)::uuid[]) AND k.expires_at <= \(\.now)
            RETURNING k.kept_id
        )
        SELECT count(*) FROM gone g
        """
}

/// Finds the expiry times of kept keyrings, by the index `kept_keyrings_by_expiry`.
struct FindDueKeyrings: OldestRows {
    static let kind = "keyrings"
    static let time: SQLFragment = "k.expires_at"
    static let table: SQLFragment = "saltern.kept_keyrings k"

    let moment: Timestamp
    let limit: Int64
}

/// Removes one kept keyring.
struct RemoveKeptKeyring: Statement {
    let accountID: AccountID
    let id: KeptKeyringID

    static let sql: SQL<Self> = """
        DELETE FROM saltern.kept_keyrings k WHERE k.account_id = \(\.accountID) AND k.kept_id = \(\.id)
        """
}

/// Replaces the present keyring by a kept one, with the next revision. The account's row must be locked.
struct RestoreKeyring: Statement {
    typealias Row = Int64

    let accountID: AccountID
    let keyring: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a
        SET keyring = \(\.keyring), keyring_revision = \(AccountCounter.next("a.keyring_revision"))
        WHERE a.account_id = \(\.accountID)
        RETURNING a.keyring_revision
        """
}

/// Restores the recovery keyring. The account's row must be locked.
struct RestoreRecoveryKeyring: Statement {
    let accountID: AccountID
    let keyring: [UInt8]

    static let sql: SQL<Self> =
        "UPDATE saltern.recoveries r SET keyring = \(\.keyring) WHERE r.account_id = \(\.accountID)"
}
