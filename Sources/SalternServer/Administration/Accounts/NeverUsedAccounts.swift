public import Postgres

/// Finds and deletes accounts without any use since their registration, such as those of bots.
///
/// An account is never used if all of these hold:
///
/// - It stores only the rows of its registration: no item ever, at most the first keyring, the first credential.
/// - It has no recovery key, second factor, passkey, share, shared vault, rotation or receipt.
/// - It is not locked.
/// - No stored session was opened or used later than a minute after the registration.
public struct NeverUsedAccounts {
    private let database: PostgresClient
    private let createdBefore: Timestamp

    /// Maximum number of accounts that one transaction deletes.
    public static let batchSize = 50
    /// The number of accounts that one statement reads.
    static let sliceSize: Int64 = 2_000

    /// - Parameters:
    ///   - database: Connects as the schema's owner.
    ///   - createdBefore: Younger accounts are left unchanged.
    public init(database: PostgresClient, createdBefore: Timestamp) {
        self.database = database
        self.createdBefore = createdBefore
    }

    /// The progress of a scan of all accounts.
    public struct Progress: Sendable, Equatable {
        /// The scanned part of all keys, from 0 to 1. Keys are random, so it equals the part of accounts. Counting
        /// millions of accounts first would take longer than the scan.
        var position = 0.0
        public internal(set) var looked = 0
        public internal(set) var found = 0
        public internal(set) var deleted = 0

        /// An estimate of the number of accounts, exact at the end.
        public var total: Int {
            position > 0 ? max(looked, Int(min(Double(looked) / position, 1e15).rounded())) : looked
        }
    }

    /// Scans all accounts and counts those that were never used.
    ///
    /// - Parameter proceed: Receives the progress after each slice, and ends the scan by returning false.
    public func count(_ proceed: (Progress) -> Bool) async throws -> Progress {
        try await walk(proceed) { _ in 0 }
    }

    /// Scans all accounts and deletes those that were never used, in transactions of at most ``batchSize``. Each
    /// deletion has a row in the audit log. A scan can end between two batches and start again later.
    ///
    /// - Parameter proceed: Receives the progress after each batch, and ends the scan by returning false.
    public func delete(
        by signature: AuditSignature, _ proceed: (Progress) -> Bool
    ) async throws -> Progress {
        try await walk(proceed) { try await delete($0, by: signature) }
    }

    private func walk(
        _ proceed: (Progress) -> Bool, _ treat: ([AccountID]) async throws -> Int
    ) async throws -> Progress {
        var progress = Progress()
        var last: AccountID?
        while true {
            let slice = try await database.execute(
                FindNeverUsedAccounts(after: last, createdBefore: createdBefore, limit: Self.sliceSize))
            var batch: [AccountID] = []
            for (index, account) in slice.enumerated() {
                progress.looked += 1
                let isLast = index == slice.count - 1
                progress.position = isLast && slice.count < Self.sliceSize ? 1 : account.id.position
                if account.isNeverUsed {
                    batch.append(account.id)
                    progress.found += 1
                }
                guard batch.count == Self.batchSize || isLast else { continue }
                if !batch.isEmpty { progress.deleted += try await treat(batch) }
                batch.removeAll(keepingCapacity: true)
                if !proceed(progress) { return progress }
            }
            guard slice.count == Self.sliceSize else {
                progress.position = 1
                return progress
            }
            last = slice.last?.id
        }
    }

    /// Deletes the accounts of a batch that are still unused.
    ///
    /// It locks all accounts in the order of their ids before the first removal. It removes all before the first row in
    /// the audit log (``LockOrder``).
    private func delete(_ accounts: [AccountID], by signature: AuditSignature) async throws -> Int {
        try await database.withTransaction(use: .long(by: nil)) { transaction in
            for account in accounts { _ = try await transaction.execute(LockAccountWholly(accountID: account)) }
            var unused: [AccountID] = []
            for account in accounts
            where try await transaction.execute(
                ConfirmNeverUsed(accountID: account, createdBefore: createdBefore)
            ).first != nil {
                unused.append(account)
            }
            let deletions = unused.map {
                AccountDeletion(accountID: $0, by: signature, detail: "never used")
            }
            for deletion in deletions { _ = try await deletion.remove(transaction) }
            for deletion in deletions { try await deletion.record(transaction) }
            return unused.count
        }
    }
}

extension AccountID {
    /// The position among all keys, from 0 to 1.
    fileprivate var position: Double { Double(uuid.high) / 0x1p64 }
}

/// The tables of which a row of an account is a use.
private let tablesOfUse: [SQLFragment] = [
    "recoveries", "second_factors", "passkeys", "account_shares", "memberships", "rotations", "receipts",
]

/// The condition that the account `a` was never used, and was created before a parameter's time.
private func unusedAccount<Root>(createdBefore moment: SQL<Root>) -> SQL<Root> {
    let absences = tablesOfUse.map { table -> SQLFragment in
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
