internal import Postgres

/// How many accounts there are.
struct CountAccounts: Statement {
    static let isReadOnly = true
    static let sql = "SELECT count(*) FROM saltern.accounts"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Int64 { try row.next() }
}

/// The condition that the account `a` was never used, and was created before a moment that a parameter names.
private func unusedAccount(createdBefore moment: String) -> String {
    let tables = ["recoveries", "second_factors", "account_shares", "rotations", "receipts"]
    let absences = tables.map {
        "AND NOT EXISTS (SELECT FROM saltern.\($0) x WHERE x.account_id = a.account_id)"
    }
    return """
        (a.created_at < \(moment) AND a.revision = 0 AND a.keyring_revision <= 1 AND a.credential_revision = 1
        AND a.locked_at IS NULL AND NOT EXISTS (
            SELECT FROM saltern.sessions x
            WHERE x.account_id = a.account_id AND x.last_used_at > a.created_at + interval '1 minute'
        ) \(absences.joined(separator: " ")))
        """
}

/// A slice of all accounts in the order of their keys, behind `after`, with whether each was never used.
struct FindNeverUsedAccounts: Statement {
    let after: AccountID?
    let createdBefore: Timestamp
    let limit: Int64

    struct Row: Sendable {
        let id: AccountID
        let isNeverUsed: Bool
    }

    static let isReadOnly = true
    static let sql = """
        SELECT a.account_id, \(unusedAccount(createdBefore: "$2"))
        FROM (
            SELECT account_id, created_at, revision, keyring_revision, credential_revision, locked_at
            FROM saltern.accounts WHERE account_id > $1 ORDER BY account_id LIMIT $3
        ) a
        ORDER BY a.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(after ?? AccountID(UUID(high: 0, low: 0)))
        parameters.append(createdBefore)
        parameters.append(limit)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(id: try row.next(), isNeverUsed: try row.next())
    }
}

/// An account, if it was never used still.
struct ConfirmNeverUsed: Statement {
    let accountID: AccountID
    let createdBefore: Timestamp

    static let isReadOnly = true
    static let sql = """
        SELECT a.account_id FROM saltern.accounts a
        WHERE a.account_id = $1 AND \(unusedAccount(createdBefore: "$2"))
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        parameters.append(createdBefore)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> AccountID { try row.next() }
}
