public import Postgres

/// Finds and deletes accounts that nobody has used since they were registered: what a wave of bots leaves.
///
/// Never used is an account that has stored nothing but what registration stores (no item ever, the first keyring or
/// none, the first credential), has no recovery key, second factor, share, rotation or receipt, is not locked, and has no
/// stored session that was opened or used later than a minute after the registration.
public struct NeverUsedAccounts {
    private let database: PostgresClient
    private let createdBefore: Timestamp

    /// How many accounts one transaction deletes.
    public static let batchSize = 50
    /// How many are looked at in one statement.
    static let sliceSize: Int64 = 2_000

    /// - Parameters:
    ///   - database: Connects as the schema's owner.
    ///   - createdBefore: Younger accounts are left alone.
    public init(database: PostgresClient, createdBefore: Timestamp) {
        self.database = database
        self.createdBefore = createdBefore
    }

    /// How far a walk through all accounts has come.
    public struct Progress: Sendable, Equatable {
        /// How much of the keys is behind it, from 0 to 1. They are random, so that is how much of the accounts, and none has to
        /// be counted ahead: that takes longer than all else when there are millions.
        var position = 0.0
        public internal(set) var looked = 0
        public internal(set) var found = 0
        public internal(set) var deleted = 0

        /// About how many accounts there are, and exactly in the end.
        public var total: Int {
            position > 0 ? max(looked, Int(min(Double(looked) / position, 1e15).rounded())) : looked
        }
    }

    /// Walks through all accounts and counts those that were never used.
    /// - Parameter proceed: Is told the progress after every slice; false ends the walk.
    public func count(_ proceed: (Progress) -> Bool) async throws -> Progress {
        try await walk(proceed) { _ in 0 }
    }

    /// Walks through all accounts and deletes those that were never used, in transactions of at most ``batchSize``, each
    /// account with a row in the audit log. Between two batches the walk can be ended, and begun again later.
    /// - Parameter proceed: Is told the progress after every batch; false ends the walk.
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

    /// Deletes those of a batch that are unused still.
    ///
    /// All are locked before the first is removed, in the order of their ids, and all are removed before the first leaves
    /// its row in the audit log (``LockOrder``).
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
    /// Where among all keys it is, from 0 to 1.
    fileprivate var position: Double { Double(uuid.high) / 0x1p64 }
}
