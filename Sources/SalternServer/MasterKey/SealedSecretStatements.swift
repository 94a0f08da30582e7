internal import Postgres

/// How many sealed secrets begin with the name of which key.
struct CountSealedSecrets: Statement {
    struct Row: Sendable {
        /// The form and the key's name.
        let header: [UInt8]
        let count: Int64
    }

    static let isReadOnly = true
    static let sql = """
        SELECT substring(f.sealed_secret FROM 1 FOR 5), count(*) FROM saltern.second_factors f GROUP BY 1 ORDER BY 1
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(header: try row.next(), count: try row.next())
    }
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
    static let sql = """
        SELECT f.account_id, f.sealed_secret FROM saltern.second_factors f
        WHERE f.account_id > $1 AND substring(f.sealed_secret FROM 1 FOR 5) <> $2
        ORDER BY f.account_id LIMIT $3
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(after)
        parameters.append(activeHeader)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(accountID: try row.next(), sealedSecret: try row.next())
    }
}

/// Puts the same secret, sealed anew, in the place of the one that was read; no row when that is another one by now.
struct ReplaceSealedSecret: Statement {
    let accountID: AccountID
    let old: [UInt8]
    let new: [UInt8]

    static let sql = """
        UPDATE saltern.second_factors f SET sealed_secret = $3
        WHERE f.account_id = $1 AND f.sealed_secret = $2
        RETURNING f.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(old)
        parameters.append(new)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}
