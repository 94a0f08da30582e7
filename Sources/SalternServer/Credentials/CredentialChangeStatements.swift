internal import Postgres

/// Gives a userid a new verifier; a row when the userid's credential was still the one that the caller knows.
struct ReplaceVerifier: Statement {
    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The credential that is replaced.
    let credentialRevision: Int64

    static let sql = """
        UPDATE saltern.logins l
        SET verifier = $3, kdf_iterations = $4, credential_revision = l.credential_revision + 1
        WHERE l.userid = $1 AND l.account_id = $2 AND l.credential_revision = $5
        RETURNING true
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(userid.string)
        parameters.append(accountID)
        parameters.append(verifier)
        parameters.append(kdfIterations)
        parameters.append(credentialRevision)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}

/// Takes a userid for an account that has another one now; no row when somebody has it.
///
/// It waits for whoever is about to take or to leave the userid. The old one is left afterwards, with ``RemoveLogin``:
/// in this order two accounts that want each other's userids are both refused, and never wait for each other.
struct TakeUserid: Statement {
    let userid: Userid
    let accountID: AccountID
    let verifier: Verifier
    let kdfIterations: Int32
    /// The credential that is replaced.
    let credentialRevision: Int64

    static let sql = """
        INSERT INTO saltern.logins (userid, account_id, verifier, kdf_iterations, credential_revision)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (userid) DO NOTHING
        RETURNING true
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(userid.string)
        parameters.append(accountID)
        parameters.append(verifier)
        parameters.append(kdfIterations)
        parameters.append(credentialRevision + 1)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Bool { try row.next() }
}

/// Frees a userid.
struct RemoveLogin: Statement {
    let userid: Userid
    let accountID: AccountID

    static let sql = "DELETE FROM saltern.logins WHERE userid = $1 AND account_id = $2"

    func bind(to parameters: inout Parameters) {
        parameters.append(userid.string)
        parameters.append(accountID)
    }
}

/// The account's side of a change of credential: the number of the credential, the userid when it is a new one, and the
/// keyring when there is a new one. No row when credential or keyring are not those that the caller knows.
struct MoveCredential: Statement {
    let accountID: AccountID
    /// The credential that is replaced.
    let credentialRevision: Int64
    let userid: Userid?
    let keyring: Keyring?
    /// The revision of the keyring that is replaced; nil for any.
    let keyringRevision: Int64?

    static let sql = """
        UPDATE saltern.accounts a
        SET credential_revision = a.credential_revision + 1, userid = coalesce($3, a.userid),
            keyring = coalesce($4, a.keyring),
            keyring_revision = a.keyring_revision + CASE WHEN $4 IS NULL OR a.keyring = $4 THEN 0 ELSE 1 END
        WHERE a.account_id = $1 AND a.credential_revision = $2
            AND ($5::bigint IS NULL OR a.keyring_revision = $5)
        RETURNING CASE WHEN a.keyring IS NOT NULL THEN a.keyring_revision END
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(credentialRevision)
        parameters.append(userid?.string)
        parameters.append(keyring?.bytes)
        parameters.append(keyringRevision)
    }

    /// The keyring's revision; nil when there is no keyring.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64? { try row.next() }
}

/// The caller's session when it is live, restricted or not, and what leads to the credential of its account.
struct FindAnySession: Statement {
    let caller: Caller

    struct Row: Sendable {
        let isRestricted: Bool
        let userid: Userid
        let credentialRevision: Int64
    }

    static let isReadOnly = true
    static let sql = """
        SELECT s.restricted, a.userid, a.credential_revision
        FROM saltern.sessions s JOIN saltern.accounts a ON a.account_id = s.account_id
        WHERE s.account_id = $1 AND s.token_hash = $2 AND s.expires_at > $3 AND s.last_used_at > $4
            AND a.account_id = $1 AND a.locked_at IS NULL
        """

    func bind(to parameters: inout Parameters) { caller.bind(to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(isRestricted: try row.next(), userid: try row.next(), credentialRevision: try row.next())
    }
}
