internal import Postgres

/// Finds the caller's userid.
struct FindUserid: AccountRead {
    typealias Row = Userid

    static let sql: AccountSQL<Self> = "SELECT userid FROM saltern.accounts a WHERE a.account_id = \(.account)"
}

/// Finds the number of the account's credential. Returns no row if the session is not live or the account is locked.
struct FindCredentialRevision: Statement {
    typealias Row = Int64

    let caller: Caller

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.credential_revision FROM saltern.accounts a
        WHERE a.account_id = \(\.caller.accountID) AND a.locked_at IS NULL AND \(Caller.hasLiveSession, from: \.caller)
        """
}
