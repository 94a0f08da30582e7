internal import Postgres

/// Changes all shares of an account. The caller must lock the account's row, so that none is created meanwhile.
enum AccountShares {
    /// Removes ended shares to make room for others.
    static func removeEnded(
        of account: AccountID, at now: Timestamp, in transaction: Transaction
    ) async throws(PostgresError) {
        let ended = try await transaction.execute(FindEndedAccountShares(accountID: account, now: now))
        _ = try await remove(ended, of: account, at: now, in: transaction)
    }

    /// Removes the ended ones of these shares.
    ///
    /// - Returns: The number of removed shares.
    static func remove(
        _ ids: [ShareID], of account: AccountID, at now: Timestamp, in transaction: Transaction
    ) async throws(PostgresError) -> Int {
        var gone: [ShareID] = []
        // Citus locks no rows of several shards in one statement.
        for ids in transaction.isDistributed ? ids.map({ [$0] }) : [ids] where !ids.isEmpty {
            gone += try await transaction.execute(RemoveEndedShares(ids: ids, now: now))
        }
        if gone.isEmpty { return 0 }
        _ = try await transaction.execute(RemoveAccountShares(accountID: account, ids: gone))
        return gone.count
    }

    /// Suspends the account's links, or ends their suspension.
    static func suspend(
        _ isSuspended: Bool, of account: AccountID, in transaction: Transaction
    ) async throws(PostgresError) {
        let ids = try await transaction.execute(FindShareIDs(accountID: account))
        if ids.isEmpty { return }
        _ = try await transaction.execute(SuspendShares(ids: ids, owner: account, isSuspended: isSuspended))
    }
}

/// Finds all shares of an account.
struct FindShareIDs: Statement {
    typealias Row = ShareID

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT h.share_id FROM saltern.account_shares h WHERE h.account_id = \(\.accountID)"
}

/// Suspends shares of an account, or ends their suspension.
struct SuspendShares: Statement {
    let ids: [ShareID]
    let owner: AccountID
    let isSuspended: Bool

    static let sql: SQL<Self> = """
        UPDATE saltern.shares s SET suspended = \(\.isSuspended)
        WHERE s.share_id = ANY(\(\.ids)::bytea[]) AND s.owner_account = \(\.owner) AND s.suspended <> \(\.isSuspended)
        """
}

extension Identifier where Entity == Account {
    /// Represents the missing owner of shares without an account.
    static var nobody: AccountID { AccountID(.zero) }
}

/// SQL for the number of an account's shares.
enum ShareCount {
    /// The condition that a share of the alias `h` counts at a moment.
    static func condition<Root, Context>(at moment: SQLTemplate<Root, Context>) -> SQLTemplate<Root, Context> {
        "(h.expires_at IS NULL OR h.expires_at > \(moment))"
    }

    /// The number of shares as a subquery.
    static func sql<Root, Context>(
        of account: SQLTemplate<Root, Context>, at moment: SQLTemplate<Root, Context>
    ) -> SQLTemplate<Root, Context> {
        "(SELECT count(*) FROM saltern.account_shares h WHERE h.account_id = \(account) AND \(condition(at: moment)))"
    }
}

/// Removes shares from an account's list.
struct RemoveAccountShares: Statement {
    let accountID: AccountID
    let ids: [ShareID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.account_shares h WHERE h.account_id = \(\.accountID) AND h.share_id = ANY(\(\.ids)::bytea[])
        """
}

/// Finds ended shares, earliest end first, by the index `shares_by_expiry`. Used-up shares have ended as well. Shares
/// without an account have the owner `AccountID.nobody`.
struct FindEndedShares: Statement {
    /// The row with its sealed bytes.
    typealias Row = DueRow<ShareID>

    let now: Timestamp
    /// Accounts to leave out.
    let except: [AccountID]
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(owner), s.share_id, octet_length(s.sealed)::bigint FROM saltern.shares s
        WHERE s.expires_at <= \(\.now) AND \(owner) <> ALL(\(\.except)::uuid[])
        ORDER BY s.expires_at LIMIT \(\.limit)
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
        Row(owner: try row.next(), id: try row.next(), bytes: try row.next())
    }

    private static let owner: SQLFragment = "coalesce(s.owner_account, '00000000-0000-0000-0000-000000000000')"
}

/// Finds up to 1,000 ended shares that are still on an account's list, or on that of shares without one.
struct FindEndedAccountShares: Statement {
    typealias Row = ShareID

    let accountID: AccountID
    let now: Timestamp

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT h.share_id FROM saltern.account_shares h
        WHERE h.account_id = \(\.accountID) AND h.expires_at <= \(\.now)
        LIMIT 1000
        """
}

/// Removes ended shares and returns their ids. A share that is locked at the moment is left to the next purge.
struct RemoveEndedShares: Statement {
    typealias Row = ShareID

    let ids: [ShareID]
    let now: Timestamp

    static let sql: SQL<Self> = """
        WITH idle AS (
            SELECT s.share_id FROM saltern.shares s
            WHERE s.share_id = ANY(\(\.ids)::bytea[]) AND s.expires_at <= \(\.now)
            FOR UPDATE SKIP LOCKED
        )
        DELETE FROM saltern.shares d USING idle i WHERE d.share_id = ANY(\(\.ids)::bytea[]) AND d.share_id = i.share_id
        RETURNING d.share_id
        """
}

/// Removes a share after its last view. It waits for concurrent requests of the share on other nodes, because the same
/// transaction removes the share from its owner's list.
struct RemoveUsedUpShare: Statement {
    typealias Row = ChangedRows

    let id: ShareID
    let now: Timestamp

    static let sql: SQL<Self> =
        "DELETE FROM saltern.shares s WHERE s.share_id = \(\.id) AND s.expires_at <= \(\.now)"
}
