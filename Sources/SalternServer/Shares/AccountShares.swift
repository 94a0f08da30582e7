internal import Postgres

/// What becomes of an account's shares when the account is locked. The caller has locked the account's row, so none is
/// created meanwhile.
enum AccountShares {
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
    let accountID: AccountID

    static let isReadOnly = true
    static let sql = "SELECT h.share_id FROM saltern.account_shares h WHERE h.account_id = $1"

    func bind(to parameters: inout Parameters) { parameters.append(accountID) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> ShareID { try row.next() }
}

/// Suspends shares of an account, or ends that.
struct SuspendShares: Statement {
    let ids: [ShareID]
    let owner: AccountID
    let isSuspended: Bool

    static let sql = """
        UPDATE saltern.shares s SET suspended = $3
        WHERE s.share_id = ANY($1::bytea[]) AND s.owner_account = $2 AND s.suspended <> $3
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(ids)
        parameters.append(owner)
        parameters.append(isSuspended)
    }
}
