internal import Postgres

/// How many sealed secrets begin with the name of which key.
struct CountSealedSecrets: Statement {
    struct Row: Sendable {
        /// The form and the key's name.
        let header: [UInt8]
        let count: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT substring(f.sealed_secret FROM 1 FOR 5), count(*) FROM saltern.second_factors f GROUP BY 1 ORDER BY 1
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Sealed secrets of accounts behind one, in the order of the accounts, that another key than the active one has sealed.
struct FindOutdatedSecrets: Statement {
    let after: AccountID
    /// How everything begins that the active key has sealed.
    let activeHeader: [UInt8]
    let limit: Int64

    struct Row: Sendable {
        let accountID: AccountID
        let sealedSecret: [UInt8]
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT f.account_id, f.sealed_secret FROM saltern.second_factors f
        WHERE f.account_id > \(\.after) AND substring(f.sealed_secret FROM 1 FOR 5) <> \(\.activeHeader)
        ORDER BY f.account_id LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Puts the same secret, sealed anew, in the place of the one that was read; no row when that is another one by now.
struct ReplaceSealedSecret: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let old: [UInt8]
    let new: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.second_factors f SET sealed_secret = \(\.new)
        WHERE f.account_id = \(\.accountID) AND f.sealed_secret = \(\.old)
        RETURNING f.account_id
        """
}
