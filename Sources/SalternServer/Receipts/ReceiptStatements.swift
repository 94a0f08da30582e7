internal import Postgres

/// Stores the account's receipt and notes it in the security log, unless it is stored already. Returns when it was
/// stored.
struct WriteReceipt: AccountWrite {
    let receipt: Receipt
    let eventID = SecurityEventID.random()

    static let locksAccount = true
    static let sql = """
        WITH account AS (
            SELECT a.account_id, r.receipt, r.updated_at
            FROM saltern.accounts a
            LEFT JOIN saltern.receipts r ON r.account_id = a.account_id AND r.account_id = $1
            WHERE a.account_id = $1 AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), written AS (
            INSERT INTO saltern.receipts AS r (account_id, receipt, updated_at)
            SELECT a.account_id, $5, $3 FROM account a WHERE a.receipt IS DISTINCT FROM $5
            ON CONFLICT (account_id) DO UPDATE SET receipt = excluded.receipt, updated_at = excluded.updated_at
            RETURNING r.account_id, r.updated_at
        ), noted AS (
            INSERT INTO saltern.security_events (account_id, occurred_at, event_id, kind)
            SELECT w.account_id, $3, $6, $7 FROM written w
        )
        SELECT coalesce(w.updated_at, a.updated_at) FROM account a LEFT JOIN written w ON w.account_id = a.account_id
        """

    func bind(to parameters: inout Parameters) {
        parameters.append(receipt.text)
        parameters.append(eventID)
        parameters.append(SecurityEvent.Kind.receiptChanged.rawValue)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Timestamp { try row.next() }
}
