internal import Postgres

/// Finds the account's keyring, if any, and its revision.
struct FindKeyring: AccountRead {
    struct Row: Sendable {
        let keyring: [UInt8]?
        /// 0 before the first keyring.
        let revision: Int64
    }

    static let sql: AccountSQL<Self> =
        "SELECT a.keyring, a.keyring_revision FROM saltern.accounts a WHERE a.account_id = \(.account)"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds the holders of the account's data keys. A request that changes the keys must cover each.
struct FindKeyHolders: AccountRead {
    struct Row: Sendable {
        /// The revision of the account's keyring. Nil without one.
        let keyringRevision: Int64?
        let hasRecovery: Bool
        /// The passkeys that have an unlock box.
        let unlockingPasskeys: [PasskeyID]
    }

    static let sql: AccountSQL<Self> = """
        SELECT CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END,
            EXISTS (SELECT FROM saltern.recoveries r WHERE r.account_id = \(.account)),
            ARRAY(
                SELECT k.credential_id FROM saltern.passkeys k
                WHERE k.account_id = \(.account) AND k.unlock_box IS NOT NULL ORDER BY k.created_at, k.credential_id)
        FROM saltern.accounts a WHERE a.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Gives the account's keyring its next revision. The account's row must be locked.
struct MoveKeyringRevision: Statement {
    typealias Row = Int64

    let accountID: AccountID

    static let sql: SQL<Self> = """
        UPDATE saltern.accounts a SET keyring_revision = \(AccountCounter.next("a.keyring_revision"))
        WHERE a.account_id = \(\.accountID) AND a.keyring IS NOT NULL
        RETURNING a.keyring_revision
        """
}

/// Creates or replaces the account's keyring with its next revision.
///
/// Equal content is `unchanged` for any precondition. The request then repeats one whose reply was lost or, with the
/// present revision as precondition, changes only the recovery.
struct WriteKeyring: AccountWrite {
    let precondition: Precondition
    let keyring: Keyring
    /// True if the request covers the recovery, which would otherwise keep opening the old keys.
    let coversRecovery: Bool

    struct Row: Sendable {
        let outcome: Outcome
        /// The revision after the write, or the present one if the precondition fails.
        let revision: Int64
        /// The present keyring if the precondition fails.
        let current: [UInt8]?
        /// True if the account has a recovery key before the change.
        let hasRecovery: Bool
    }

    enum Outcome: String, Sendable, PostgresValue {
        case created
        case updated
        case unchanged
        case preconditionFailed = "precondition_failed"
        case recoveryNotCovered = "recovery_not_covered"
    }

    static let sql: CallerSQL<Self> = """
        WITH decision AS (
            SELECT a.account_id, a.keyring, a.keyring_revision, n.has_recovery,
                CASE
                    WHEN a.keyring = \(\.keyring.bytes) THEN 'unchanged'
                    WHEN (\(\.precondition.parameter) = 0 AND a.keyring IS NOT NULL)
                        OR (\(\.precondition.parameter) = -1 AND a.keyring IS NULL)
                        OR (\(\.precondition.parameter) > 0 AND (a.keyring IS NULL
                            OR a.keyring_revision <> \(\.precondition.parameter)))
                    THEN 'precondition_failed'
                    WHEN n.has_recovery AND NOT \(\.coversRecovery) THEN 'recovery_not_covered'
                    WHEN a.keyring IS NULL THEN 'created'
                    ELSE 'updated'
                END AS outcome
            FROM saltern.accounts a CROSS JOIN (
                SELECT EXISTS (SELECT FROM saltern.recoveries r WHERE r.account_id = \(.account)) AS has_recovery
            ) n
            WHERE a.account_id = \(.account) AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), written AS (
            UPDATE saltern.accounts a SET keyring = \(\.keyring.bytes),
                keyring_revision = \(AccountCounter.next("a.keyring_revision"))
            FROM decision d
            WHERE a.account_id = \(.account) AND a.account_id = d.account_id AND d.outcome IN ('created', 'updated')
            RETURNING a.account_id, a.keyring_revision
        )
        SELECT d.outcome, coalesce(w.keyring_revision, d.keyring_revision),
            CASE WHEN d.outcome = 'precondition_failed' THEN d.keyring END, d.has_recovery
        FROM decision d LEFT JOIN written w ON w.account_id = d.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
