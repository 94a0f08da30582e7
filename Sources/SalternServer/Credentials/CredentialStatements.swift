internal import Postgres

/// The KDF iterations of a userid and those of its decoy, in one row whether the userid is known or not.
struct FindKDFParameters: Statement {
    let userid: Userid
    /// The userid's place among the decoys, from 1.
    let slot: Int32

    struct Row: Sendable {
        let iterations: Int32?
        let decoyIterations: Int32
    }

    static let isReadOnly = true
    static let sql = """
        SELECT l.kdf_iterations, i.decoy_iterations[$2]
        FROM saltern.installation i LEFT JOIN saltern.logins l ON l.userid = $1
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(userid.string)
        parameters.append(slot)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(iterations: try row.next(), decoyIterations: try row.next())
    }
}

/// What a login is checked against.
struct FindLogin: Statement {
    let userid: Userid

    struct Row: Sendable {
        let accountID: AccountID
        let verifier: Verifier
        let kdfIterations: Int32
        /// Moves with every change of the credential.
        let credentialRevision: Int64
    }

    static let isReadOnly = true
    static let sql = """
        SELECT account_id, verifier, kdf_iterations, credential_revision FROM saltern.logins WHERE userid = $1
        """

    func bind(to parameters: inout Parameters) { parameters.append(userid.string) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(
            accountID: try row.next(), verifier: try row.next(), kdfIterations: try row.next(),
            credentialRevision: try row.next())
    }
}

/// Replaces the decoys by the quantiles of the iteration counts that accounts have now; one row when it did,
/// none when the last drawing is too recent or there are no accounts.
///
/// The k-th of 256 is the quantile at (k - 1/2)/256, so a count that a share p of the accounts has fills about
/// 256·p slots.
struct RedrawDecoys: Statement {
    let now: Timestamp
    let drawnBefore: Timestamp

    static let sql = """
        WITH drawn AS (
            SELECT percentile_disc(
                ARRAY(SELECT (k - 0.5) / 256 FROM generate_series(1, 256) AS k)::double precision[]
            ) WITHIN GROUP (ORDER BY kdf_iterations) AS iterations
            FROM saltern.logins
        )
        UPDATE saltern.installation i
        SET decoy_iterations = d.iterations, decoys_drawn_at = $1
        FROM drawn d
        WHERE i.singleton AND i.decoys_drawn_at <= $2 AND d.iterations IS NOT NULL
        RETURNING true
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(now)
        parameters.append(drawnBefore)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}
