internal import Postgres

/// Finds the account of a userid.
struct FindAccountOfUserid: Statement {
    typealias Row = AccountID

    let userid: String

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT account_id FROM saltern.logins WHERE userid = \(\.userid)"
}
