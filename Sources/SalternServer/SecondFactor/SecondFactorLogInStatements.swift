internal import Postgres

/// Opens a session like ``OpenSession`` and uses up a one-time password, both or neither.
///
/// Of those who come with the same code, all wait for the first one's row, and then find that the step is not a later one
/// any more.
struct OpenSessionWithOneTimeCode: Statement {
    let opening: OpenSession
    /// When the secret was made that the code belongs to.
    let enrolledAt: Timestamp
    /// The step whose code was shown.
    let step: Int64

    static let sql = """
        WITH \(OpenSession.account), used AS (
            UPDATE saltern.second_factors f SET last_step = $11 FROM account a
            WHERE f.account_id = $1 AND f.confirmed_at IS NOT NULL AND f.created_at = $10 AND f.last_step < $11
            RETURNING f.account_id
        ), opened AS (
            \(OpenSession.insertion) JOIN used u ON u.account_id = a.account_id
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    func bind(to parameters: inout Parameters) {
        opening.bind(to: &parameters)
        parameters.append(enrolledAt)
        parameters.append(step)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}

/// Opens a session like ``OpenSession`` and uses up a recovery code of the second factor, both or neither, and records
/// that one was used.
struct OpenSessionWithRecoveryCode: Statement {
    let opening: OpenSession
    let codeHash: SecondFactorRecoveryCodeHash
    let eventID = SecurityEventID.random()

    static let sql = """
        WITH \(OpenSession.account), used AS (
            DELETE FROM saltern.second_factor_codes c USING account a
            WHERE c.account_id = $1 AND c.code_hash = $10 AND a.sealed_secret IS NOT NULL
            RETURNING c.account_id
        ), opened AS (
            \(OpenSession.insertion) JOIN used u ON u.account_id = a.account_id
        ), recorded AS (
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind, session_id, device_name)
            SELECT u.account_id, $5, $11, $12, $3, $4 FROM used u
        )
        SELECT \(OpenSession.columns) FROM account a JOIN used u ON u.account_id = a.account_id
        """

    func bind(to parameters: inout Parameters) {
        opening.bind(to: &parameters)
        parameters.append(codeHash)
        parameters.append(eventID)
        parameters.append(SecurityEvent.Kind.totpCodeUsed.rawValue)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> OpenSession.Row {
        try OpenSession.decode(&row)
    }
}
