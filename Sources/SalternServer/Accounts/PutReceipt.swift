internal import HTTPCore
internal import Postgres

/// `PUT /v1/account/receipt`: stores a purchase receipt with the account, for its owner's export and for admins.
struct PutReceipt: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let receipt = try JSONBody.read(request) { try $0.required("receipt", Receipt.init(json:)) }
        let (account, now) = (authorization.accountID, authorization.now)
        let write = WriteReceipt(receipt: receipt)
        let event = RecordSecurityEvent(accountID: account, kind: .receiptChanged, now: now, writer: write.writer)
        let written = try await authorization.write(
            write, followedBy: StoreReceipt(write: write, accountID: account, now: now), event,
            DropOldEvents(after: event),
            ReportedEvent(accountID: account, kind: .receiptStored, now: now, writer: write.writer)
        ).first
        guard let written else { throw Unauthenticated() }
        let updatedAt = written.isNew ? now : written.updatedAt ?? now
        return .json { writer in
            writer.object { writer in writer.member("receiptUpdatedAt", updatedAt) }
        }
    }
}

/// Decides if a receipt differs from the stored one, as the first of four statements. ``StoreReceipt``, an event and
/// ``DropOldEvents`` follow.
struct WriteReceipt: AccountWrite {
    let receipt: Receipt
    /// Stored in the account's row if the receipt differs, as a token for the statements that follow.
    let writer = Int64.random(in: .min ... .max)

    struct Row: Sendable {
        let isNew: Bool
        /// The time at which the stored receipt was stored.
        let updatedAt: Timestamp?
    }

    static let sql: CallerSQL<Self> = """
        WITH account AS (
            SELECT a.account_id, r.receipt IS DISTINCT FROM \(\.receipt.text) AS is_new, r.updated_at
            FROM saltern.accounts a
            LEFT JOIN saltern.receipts r ON r.account_id = a.account_id AND r.account_id = \(.account)
            WHERE a.account_id = \(.account) AND a.locked_at IS NULL AND \(Caller.hasLiveSession)
        ), told AS (
            UPDATE saltern.accounts a SET writer = \(\.writer) FROM account o
            WHERE a.account_id = \(.account) AND o.is_new
        )
        SELECT a.is_new, a.updated_at FROM account a
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Stores the receipt if ``WriteReceipt`` found that it differs.
struct StoreReceipt: Statement {
    let write: WriteReceipt
    let accountID: AccountID
    let now: Timestamp

    static let sql: SQL<Self> = """
        MERGE INTO saltern.receipts r USING (
            SELECT a.account_id FROM saltern.accounts a
            WHERE a.account_id = \(\.accountID) AND a.writer = \(\.write.writer)
        ) n ON r.account_id = n.account_id
        WHEN MATCHED THEN UPDATE SET receipt = \(\.write.receipt.text), updated_at = \(\.now)
        WHEN NOT MATCHED THEN INSERT (account_id, receipt, updated_at)
            VALUES (n.account_id, \(\.write.receipt.text), \(\.now))
        """
}

/// A purchase receipt that an app received from a store. The server does not interpret the text.
struct Receipt: Sendable {
    let text: String

    /// Maximum length in bytes of UTF-8.
    static let byteLimit = 65_536
    /// Maximum body of a request with a receipt, in bytes. JSON may escape every character.
    static let requestLimit = 6 * byteLimit + 1_024

    /// Reads 1 to 65,536 bytes of UTF-8 without NUL, which PostgreSQL does not store.
    init(json: JSONValue) throws(Problem) {
        let text = try json.text()
        guard (1...Self.byteLimit).contains(text.count), !text.utf8.contains(0) else {
            throw Problem(
                .unprocessableContent, "invalid_receipt",
                detail: "A receipt must have 1 to 65,536 bytes of UTF-8 without NUL.", limit: Self.byteLimit)
        }
        self.text = text.string
    }
}

/// The statements of receipts.
extension StatementList {
    static var receipts: [any Statement.Type] { [Guarded<WriteReceipt>.self, StoreReceipt.self] }
}
