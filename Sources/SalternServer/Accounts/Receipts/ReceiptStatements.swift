internal import Postgres

/// Stores the account's receipt and notes it in the security log, unless it is stored already. Returns when it was
/// stored.
struct WriteReceipt: AccountWrite {
    typealias Row = Timestamp

    let receipt: Receipt
    let eventID = SecurityEventID.random()

    static let sql: CallerSQL<Self> = """
        WITH account AS (
            SELECT a.account_id, r.receipt, r.updated_at
            FROM saltern.accounts a
            LEFT JOIN saltern.receipts r ON r.account_id = a.account_id AND r.account_id = \(.account)
            WHERE a.account_id = \(.account) AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), written AS (
            INSERT INTO saltern.receipts AS r (account_id, receipt, updated_at)
            SELECT a.account_id, \(\.receipt.text), \(.now) FROM account a WHERE a.receipt IS DISTINCT
                FROM \(\.receipt.text)
            ON CONFLICT (account_id) DO UPDATE SET receipt = excluded.receipt, updated_at = excluded.updated_at
            RETURNING r.account_id, r.updated_at
        ), \(SecurityEventLimit.noting(
            .receiptChanged, of: "\(.account)", when: "written", at: "\(.now)", id: "\(\.eventID)"))
        SELECT coalesce(w.updated_at, a.updated_at) FROM account a LEFT JOIN written w ON w.account_id = a.account_id
        """
}
