internal import Postgres

/// The caller's own userid.
struct FindUserid: AccountRead {
    static let sql = "SELECT userid FROM saltern.accounts a WHERE a.account_id = $1"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Userid { try row.next() }
}

/// Locks an account's row against everything, until the transaction ends: a log-in takes `FOR KEY SHARE`, a write
/// `FOR NO KEY UPDATE`, and both wait.
struct LockAccountWholly: Statement {
    let accountID: AccountID

    static let sql = "SELECT a.account_id FROM saltern.accounts a WHERE a.account_id = $1 FOR UPDATE"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}

/// Which credential the caller's account has now; no row when the session is not live or the account is locked.
struct FindCredentialRevision: Statement {
    let caller: Caller

    static let isReadOnly = true
    static let sql = """
        SELECT a.credential_revision FROM saltern.accounts a
        WHERE a.account_id = $1 AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        """

    func bind(to parameters: inout Parameters) { caller.bind(to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}
