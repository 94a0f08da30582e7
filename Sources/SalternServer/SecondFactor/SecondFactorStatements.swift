internal import Postgres

/// The account's second factor as it is stored, confirmed or not.
struct FindSecondFactor: AccountRead {
    struct Row: Sendable {
        let factor: StoredSecondFactor
        let isConfirmed: Bool
    }

    static let sql = """
        SELECT f.sealed_secret, f.created_at, f.last_step, f.confirmed_at IS NOT NULL
        FROM saltern.second_factors f WHERE f.account_id = $1
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            factor: StoredSecondFactor(
                sealedSecret: try row.next(), enrolledAt: try row.next(), lastStep: try row.next()),
            isConfirmed: try row.next())
    }
}

/// Stores a secret that waits for its first code, in the place of one that waits; no row when there is a confirmed one.
struct EnrolSecondFactor: Statement {
    let accountID: AccountID
    let sealedSecret: [UInt8]
    let now: Timestamp

    static let sql = """
        INSERT INTO saltern.second_factors AS f (account_id, sealed_secret, created_at) VALUES ($1, $2, $3)
        ON CONFLICT (account_id) DO UPDATE SET
            sealed_secret = excluded.sealed_secret, created_at = excluded.created_at, last_step = excluded.last_step
        WHERE f.account_id = $1 AND f.confirmed_at IS NULL
        RETURNING f.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(sealedSecret)
        parameters.append(now)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Makes the secret count that waits, uses up the code that was shown for it, and stores the recovery codes; no row when
/// it waits no more, or another one does.
struct ConfirmSecondFactor: AccountWrite {
    /// When the secret was made whose code was shown.
    let enrolledAt: Timestamp
    let step: Int64
    let codes: [SecondFactorRecoveryCodeHash]
    let eventID = SecurityEventID.random()

    static let locksAccount = true
    static let sql = """
        WITH confirmed AS (
            UPDATE saltern.second_factors f SET confirmed_at = $3, last_step = $6
            WHERE f.account_id = $1 AND f.confirmed_at IS NULL AND f.created_at = $5 AND \(Caller.hasLiveSession)
            RETURNING f.account_id
        ), coded AS (
            INSERT INTO saltern.second_factor_codes (account_id, code_hash)
            SELECT c.account_id, h.code_hash FROM confirmed c CROSS JOIN unnest($7::bytea[]) AS h (code_hash)
        ), recorded AS (
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
            SELECT c.account_id, $3, $8, $9 FROM confirmed c
        )
        SELECT c.account_id FROM confirmed c
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(enrolledAt)
        parameters.append(step)
        parameters.append(codes)
        parameters.append(eventID)
        parameters.append(SecurityEvent.Kind.totpEnabled.rawValue)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Removes the account's second factor with its recovery codes. A row says whether it counted; there is none when there
/// was nothing to remove.
struct RemoveSecondFactor: Statement {
    let accountID: AccountID

    static let sql = """
        WITH codes AS (
            DELETE FROM saltern.second_factor_codes c WHERE c.account_id = $1
        )
        DELETE FROM saltern.second_factors f WHERE f.account_id = $1
        RETURNING f.confirmed_at IS NOT NULL
        """

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}

/// Removes what is left of the account's recovery codes.
struct RemoveSecondFactorCodes: Statement {
    let accountID: AccountID

    static let sql = "DELETE FROM saltern.second_factor_codes c WHERE c.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }
}

/// Stores recovery codes, unless there is no confirmed second factor; a row for each.
struct InsertSecondFactorCodes: Statement {
    let accountID: AccountID
    let codes: [SecondFactorRecoveryCodeHash]

    static let sql = """
        INSERT INTO saltern.second_factor_codes (account_id, code_hash)
        SELECT f.account_id, h.code_hash
        FROM saltern.second_factors f CROSS JOIN unnest($2::bytea[]) AS h (code_hash)
        WHERE f.account_id = $1 AND f.confirmed_at IS NOT NULL
        RETURNING account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(codes)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}
