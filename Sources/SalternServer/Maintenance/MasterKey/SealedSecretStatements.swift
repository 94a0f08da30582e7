internal import Postgres

/// Counts the sealed secrets of each key.
struct CountSealedSecrets: Statement {
    struct Row: Sendable {
        /// The format and the key's id.
        let header: [UInt8]
        let count: Int64
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT substring(f.sealed_secret FROM 1 FOR 5), count(*) FROM saltern.second_factors f GROUP BY 1 ORDER BY 1
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds sealed secrets of other keys than the active one, in the order of accounts behind `after`.
struct FindOutdatedSecrets: Statement {
    let after: AccountID
    /// The first bytes of values sealed with the active key.
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

/// Replaces a secret by its resealed form. Returns no row if it has changed meanwhile.
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
