internal import Postgres

/// Uses up a one-time password for the session of ``OpenSession``. If it returns a row, ``InsertSession`` stores the
/// session in the same transaction.
///
/// Concurrent requests with the same code wait for the row. Only the first finds the step unused.
struct OpenSessionWithOneTimeCode: Statement {
    let opening: OpenSession
    /// The time at which the code's secret was created.
    let enrolledAt: Timestamp
    /// The step of the presented code.
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

/// Uses up a recovery code of the second factor for the session of ``OpenSession``. If it returns a row, the same
/// transaction stores the session (``InsertSession``) and an event.
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
