import Postgres

/// How many logins, accounts and sessions there are.
struct CountRows: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT (SELECT count(*) FROM saltern.logins), (SELECT count(*) FROM saltern.accounts),
            (SELECT count(*) FROM saltern.sessions)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> [Int64] {
        [try row.next(), try row.next(), try row.next()]
    }
}
