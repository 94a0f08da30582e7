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
