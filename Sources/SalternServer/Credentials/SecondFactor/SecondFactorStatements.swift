internal import Postgres

/// Finds the account's second factor, confirmed or not.
struct FindSecondFactor: AccountRead {
    struct Row: Sendable {
        let factor: StoredSecondFactor
        let isConfirmed: Bool
    }

    static let sql: AccountSQL<Self> = """
        SELECT f.sealed_secret, f.created_at, f.last_step, f.confirmed_at IS NOT NULL
        FROM saltern.second_factors f WHERE f.account_id = \(.account)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            factor: StoredSecondFactor(
                sealedSecret: try row.next(), enrolledAt: try row.next(), lastStep: try row.next()),
            isConfirmed: try row.next())
    }
}

/// Stores an unconfirmed secret, or replaces one. Returns no row if a confirmed one exists.
struct EnrolSecondFactor: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let sealedSecret: [UInt8]
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.second_factors AS f (account_id, sealed_secret, created_at)
            VALUES (\(\.accountID), \(\.sealedSecret), \(\.now))
        ON CONFLICT (account_id) DO UPDATE SET
            sealed_secret = excluded.sealed_secret, created_at = excluded.created_at, last_step = excluded.last_step
        WHERE f.account_id = \(\.accountID) AND f.confirmed_at IS NULL
        RETURNING f.account_id
        """
}

/// Confirms a secret and uses up the presented code. Returns no row if the secret is confirmed already or was replaced.
/// ``StoreFirstCodes``, an event and ``DropOldEvents`` follow.
struct ConfirmSecondFactor: AccountWrite {
    typealias Row = AccountID

    /// The time at which the code's secret was created.
    let enrolledAt: Timestamp
    let step: Int64
    /// Stored in the account's row as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    static let needsLease = true
    static let sql: CallerSQL<Self> = """
        WITH confirmed AS (
            UPDATE saltern.second_factors f SET confirmed_at = \(.now), last_step = \(\.step)
            WHERE f.account_id = \(.account) AND f.confirmed_at IS NULL AND f.created_at = \(\.enrolledAt)
                AND \(Caller.hasLiveSession)
            RETURNING f.account_id
        )
        UPDATE saltern.accounts a SET writer = \(\.writer) FROM confirmed c WHERE a.account_id = \(.account)
        RETURNING a.account_id
        """
}

/// Stores the recovery codes of a second factor that ``ConfirmSecondFactor`` has confirmed.
struct StoreFirstCodes: Statement {
    let confirmation: ConfirmSecondFactor
    let accountID: AccountID
    let codes: [SecondFactorRecoveryCodeHash]

    static let sql: SQL<Self> = """
        MERGE INTO saltern.second_factor_codes c USING (
            SELECT a.account_id, h.code_hash
            FROM saltern.accounts a CROSS JOIN unnest(\(\.codes)::bytea[]) AS h (code_hash)
            WHERE a.account_id = \(\.accountID) AND a.writer = \(\.confirmation.writer)
        ) n ON c.account_id = n.account_id AND c.code_hash = n.code_hash
        WHEN NOT MATCHED THEN INSERT (account_id, code_hash) VALUES (n.account_id, n.code_hash)
        """
}

/// Removes the account's second factor and its recovery codes. Returns true if it was confirmed, and no row if there
/// was none.
struct RemoveSecondFactor: Statement {
    typealias Row = Bool

    let accountID: AccountID

    static let sql: SQL<Self> = """
        WITH codes AS (
            DELETE FROM saltern.second_factor_codes c WHERE c.account_id = \(\.accountID)
        )
        DELETE FROM saltern.second_factors f WHERE f.account_id = \(\.accountID)
        RETURNING f.confirmed_at IS NOT NULL
        """
}

/// Removes the account's remaining recovery codes.
struct RemoveSecondFactorCodes: Statement {
    let accountID: AccountID

    static let sql: SQL<Self> = "DELETE FROM saltern.second_factor_codes c WHERE c.account_id = \(\.accountID)"
}

/// Stores recovery codes if there is a confirmed second factor. Returns a row for each.
struct InsertSecondFactorCodes: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let codes: [SecondFactorRecoveryCodeHash]

    static let sql: SQL<Self> = """
        INSERT INTO saltern.second_factor_codes (account_id, code_hash)
        SELECT f.account_id, h.code_hash
        FROM saltern.second_factors f CROSS JOIN unnest(\(\.codes)::bytea[]) AS h (code_hash)
        WHERE f.account_id = \(\.accountID) AND f.confirmed_at IS NOT NULL
        RETURNING account_id
        """
}
