internal import Postgres

/// What becomes of an account's shares all at once. The caller has locked the account's row, so none is created
/// meanwhile.
enum AccountShares {
    /// Removes what has ended, so that there is room for others.
    static func removeEnded(
        of account: AccountID, at now: Timestamp, in transaction: Transaction
    ) async throws(PostgresError) {
        let ended = try await transaction.execute(FindEndedAccountShares(accountID: account, now: now))
        _ = try await remove(ended, of: account, at: now, in: transaction)
    }

    /// Removes those of these that have ended.
    /// - Returns: How many.
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

    /// Lets the account's links open nothing any more, or opens them again.
    static func suspend(
        _ isSuspended: Bool, of account: AccountID, in transaction: Transaction
    ) async throws(PostgresError) {
        let ids = try await transaction.execute(FindShareIDs(accountID: account))
        if ids.isEmpty { return }
        _ = try await transaction.execute(SuspendShares(ids: ids, owner: account, isSuspended: isSuspended))
    }
}

/// Every share of an account.
struct FindShareIDs: Statement {
    typealias Row = ShareID

    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT h.share_id FROM saltern.account_shares h WHERE h.account_id = \(\.accountID)"
}

/// Suspends shares of an account, or ends that.
struct SuspendShares: Statement {
    let ids: [ShareID]
    let owner: AccountID
    let isSuspended: Bool

    static let sql: SQL<Self> = """
        UPDATE saltern.shares s SET suspended = \(\.isSuspended)
        WHERE s.share_id = ANY(\(\.ids)::bytea[]) AND s.owner_account = \(\.owner) AND s.suspended <> \(\.isSuspended)
        """
}
