internal import Postgres

/// Uses up a one-time password for what ``OpenSession`` opens. When it has a row, the session is stored in the same
/// transaction (``InsertSession``).
///
/// Of those who come with the same code, all wait for the first one's row, and then find that the step is not a later one
/// any more.
struct OpenSessionWithOneTimeCode: Statement {
    let opening: OpenSession
    /// When the secret was made that the code belongs to.
    let enrolledAt: Timestamp
    /// The step whose code was shown.
    let step: Int64

    static let sql: SQL<Self> = """
        WITH \(OpenSession.account, of: \.opening), used AS (
            UPDATE saltern.second_factors f SET last_step = \(\.step) FROM account a
            WHERE f.account_id = \(\.opening.accountID) AND f.confirmed_at IS NOT NULL
                AND f.created_at = \(\.enrolledAt)
                AND f.last_step < \(\.step)
            RETURNING f.account_id
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}

/// Uses up a recovery code of the second factor for what ``OpenSession`` opens. When it has a row, the session is stored in
/// the same transaction (``InsertSession``), and an event that one was used.
struct OpenSessionWithRecoveryCode: Statement {
    let opening: OpenSession
    let codeHash: SecondFactorRecoveryCodeHash

    static let sql: SQL<Self> = """
        WITH \(OpenSession.account, of: \.opening), used AS (
            DELETE FROM saltern.second_factor_codes c USING account a
            WHERE c.account_id = \(\.opening.accountID) AND c.code_hash = \(\.codeHash) AND a.sealed_secret IS NOT NULL
            RETURNING c.account_id
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}
