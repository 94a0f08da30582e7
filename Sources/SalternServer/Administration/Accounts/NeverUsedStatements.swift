internal import Postgres

/// The condition that the account `a` was never used, and was created before a parameter's time.
private func unusedAccount<Root>(createdBefore moment: SQL<Root>) -> SQL<Root> {
    let tables: [SQLFragment] = ["recoveries", "second_factors", "account_shares", "rotations", "receipts"]
    let absences = tables.map { table -> SQLFragment in
        "AND NOT EXISTS (SELECT FROM saltern.\(table) x WHERE x.account_id = a.account_id)"
    }
    return """
        (a.created_at < \(moment) AND a.revision = 0 AND a.keyring_revision <= 1 AND a.credential_revision = 1
        AND a.locked_at IS NULL AND NOT EXISTS (
            SELECT FROM saltern.sessions x
            WHERE x.account_id = a.account_id AND x.last_used_at > a.created_at + interval '1 minute'
        ) \(absences.joined(separator: " ")))
        """
}

/// Finds a slice of all accounts in key order behind `after`, each with a flag for never used.
struct FindNeverUsedAccounts: Statement {
    let after: AccountID?
    let createdBefore: Timestamp
    let limit: Int64

    private var lowest: AccountID { after ?? AccountID(.zero) }

    struct Row: Sendable {
        let id: AccountID
        let isNeverUsed: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.account_id, \(unusedAccount(createdBefore: "\(\.createdBefore)"))
        FROM saltern.accounts a WHERE a.account_id > \(\.lowest) ORDER BY a.account_id LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Finds an account if it is still unused.
struct ConfirmNeverUsed: Statement {
    typealias Row = AccountID

    let accountID: AccountID
    let createdBefore: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT a.account_id FROM saltern.accounts a
        WHERE a.account_id = \(\.accountID) AND \(unusedAccount(createdBefore: "\(\.createdBefore)"))
        """
}
