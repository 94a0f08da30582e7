internal import Postgres

/// The account's keyring and what the recovery code opens, with what decides whether they are kept.
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

/// The account's kept keyrings that have not expired, the one first that was replaced first.
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

/// Keeps a keyring. The account's row was locked before.
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

/// Removes an account's kept keyrings that have expired, and those that were replaced with the password key when another one
/// takes their place.
struct DropKeptKeyrings: Statement {
    let accountID: AccountID
    let now: Timestamp
    let dropsProven: Bool

    static let sql: SQL<Self> = """
        DELETE FROM saltern.kept_keyrings k
        WHERE k.account_id = \(\.accountID) AND (k.expires_at <= \(\.now) OR k.proven AND \(\.dropsProven))
        """
}

/// Removes all of an account's kept keyrings: they are sealed with a credential or hold data keys that were replaced.
struct RemoveKeptKeyrings: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.kept_keyrings k WHERE k.account_id = \(\.accountID)"
}

/// Removes what the recovery code opened from an account's kept keyrings: there is another code, or none.
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

/// The kept keyrings of all accounts that expired first, by the index `kept_keyrings_by_expiry`.
struct FindExpiredKeyrings: Statement {
    typealias Row = DueRow<KeptKeyringID>

    let now: Timestamp
    /// Accounts that are left out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT k.account_id, k.kept_id FROM saltern.kept_keyrings k
        WHERE k.expires_at <= \(\.now) AND k.account_id <> ALL(\(\.except)::uuid[])
        ORDER BY k.expires_at LIMIT \(\.limit)
        """
}

/// Removes kept keyrings of an account that have expired. Returns how many there were.
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

/// When kept keyrings expire, by the index `kept_keyrings_by_expiry`.
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

/// Puts a kept keyring in the place of the present one, with the next revision. The account's row was locked before.
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

/// Puts back what the recovery code opened. The account's row was locked before.
struct RestoreRecoveryKeyring: Statement {
    let accountID: AccountID
    let keyring: [UInt8]

    static let sql: SQL<Self> =
        "UPDATE saltern.recoveries r SET keyring = \(\.keyring) WHERE r.account_id = \(\.accountID)"
}
