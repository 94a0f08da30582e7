internal import Postgres

// Kept contents and versions under the earlier keys expire when keys are replaced. The expiry is far in the past, so
// that it holds by all nodes' clocks. The purge removes the rows.

/// The number of rows that one statement lets expire, to bound its duration.
private enum ExpirySlice {
    static let rows: Int64 = 5_000

    /// Lets rows of an account expire in key order from a key on. Returns the key of the last one, which is the given
    /// key if no others follow, and no row if there are none.
    static func expiring<Root>(
        _ table: SQLFragment, of account: SQL<Root>, key: [SQLFragment], at bounds: SQL<Root>
    ) -> SQL<Root> {
        let stored = key.map { "s.\($0)" as SQLFragment }.joined(separator: ", ")
        let expired = key.map { "e.\($0)" as SQLFragment }.joined(separator: ", ")
        let columns = key.joined(separator: ", ")
        let descending = key.map { "\($0) DESC" as SQLFragment }.joined(separator: ", ")
        return """
            WITH slice AS (
                SELECT \(stored) FROM saltern.\(table) s
                WHERE s.account_id = \(account) AND (\(stored)) >= (\(bounds))
                ORDER BY \(stored) LIMIT \(rows)
            ), expired AS (
                UPDATE saltern.\(table) e SET expires_at = 'epoch'
                WHERE e.account_id = \(account) AND e.expires_at > 'epoch' AND (\(expired)) >= (\(bounds))
                    AND (\(expired)) <= (SELECT \(columns) FROM slice ORDER BY \(descending) LIMIT 1)
            )
            SELECT \(columns) FROM slice ORDER BY \(descending) LIMIT 1
            """
    }
}

/// Lets a slice of the account's kept contents of deleted items expire.
struct ExpireSomeContents: Statement {
    typealias Row = ItemID

    let accountID: AccountID
    let from: ItemID

    static let sql: SQL<Self> = ExpirySlice.expiring(
        "deleted_contents", of: "\(\.accountID)", key: ["item_id"], at: "\(\.from)")
}

/// Lets a slice of the older versions of the account's items expire.
struct ExpireSomeVersions: Statement {
    let accountID: AccountID
    let from: VersionKey

    static let sql: SQL<Self> = ExpirySlice.expiring(
        "replaced_contents", of: "\(\.accountID)", key: ["item_id", "revision"],
        at: "\(\.from.item), \(\.from.revision)")

    static func decode(_ row: inout RowReader) throws(PostgresError) -> VersionKey { try row.read(VersionKey.init) }
}

extension Transaction {
    /// Lets all kept contents and versions of an account expire.
    func expireKept(of accountID: AccountID) async throws(PostgresError) {
        var content: (from: ItemID, last: ItemID?) = (ItemPage.lowest, nil)
        repeat {
            content.from = content.last ?? content.from
            content.last = try await execute(ExpireSomeContents(accountID: accountID, from: content.from)).first
        } while content.last != nil && content.last != content.from
        var version: (from: VersionKey, last: VersionKey?) = (VersionKey(item: ItemPage.lowest, revision: 0), nil)
        repeat {
            version.from = version.last ?? version.from
            version.last = try await execute(ExpireSomeVersions(accountID: accountID, from: version.from)).first
        } while version.last != nil && version.last != version.from
    }
}
