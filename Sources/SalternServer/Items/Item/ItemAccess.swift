internal import HTTPCore
internal import Postgres

/// Reads and changes the items of one owner with the rights of a request.
///
/// Endpoints of items have no other access to the database.
struct ItemAccess {
    private let authorization: Authorization
    /// Nil for the items of the caller's account.
    private let vault: VaultID?
    /// The number of the latest entry of the vault's log that the caller has. Nil without changes.
    private let head: Int64?

    /// Creates the access to the items of the caller's account, or of a vault.
    init(_ authorization: Authorization, vault: VaultID? = nil, head: Int64? = nil) {
        self.authorization = authorization
        self.vault = vault
        self.head = head
    }

    var owner: OwnerID { vault.map { OwnerID($0) } ?? OwnerID(authorization.accountID) }

    /// The time of the request.
    var now: Timestamp { authorization.now }

    /// The start of the interval between versions (``Caller/keptSince``).
    var keptSince: Timestamp { authorization.keptSince }

    /// Reads with the request's rights while the reply is sent.
    var reader: ItemReader { ItemReader(account: authorization.reader, vault: vault) }

    /// Reads rows of the owner.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, 404 outside of the vault, or a `PostgresError`. The
    ///   other functions as well.
    func read<Read: ItemRead>(_ read: Read) async throws -> [Read.Row] {
        guard let vault else { return try await authorization.read(read) }
        return try await authorization.read(OwnedByVault(vaultID: vault, read: read), in: vault)
    }

    /// Changes rows of the owner.
    func write<Write: ItemWrite>(_ write: Write) async throws -> [Write.Row] {
        guard vault != nil else { return try await authorization.write(write) }
        return try await transaction(after: write) { $1 }
    }

    /// Changes rows of the owner, sends two dependent statements, and returns the rows of the first and the last.
    func write<Write: ItemWrite, Next: ItemStep, Last: ItemStep>(
        _ write: Write, followedBy next: Next, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        guard vault != nil else { return try await authorization.write(write, followedBy: next, last) }
        return try await transaction(after: write) { transaction, rows in
            (rows, try await transaction.execute(next, last).1)
        }
    }

    /// Changes rows of the owner if the short path of `write` applies.
    ///
    /// - Returns: No rows if nothing was changed, for any reason. The caller then sends the full statement.
    func writeOnShortPath<Write: ShortPath>(_ write: Write) async throws -> [Write.Row] {
        guard let vault else { return try await authorization.writeOnShortPath(write) }
        if write.isLong { return [] }
        return try await authorization.send(guarded(write, in: vault), in: vault)
    }

    /// Changes rows on the short path, and sends one dependent statement in the same transaction.
    ///
    /// - Parameters:
    ///   - next: Must change nothing unless `write` has.
    ///   - byteCount: Sealed bytes in the parameters of `next`.
    func writeOnShortPath<Write: ShortPath, Next: ItemStep>(
        _ write: Write, followedBy next: Next, of byteCount: Int
    ) async throws -> [Write.Row] {
        guard let vault else { return try await authorization.writeOnShortPath(write, followedBy: next, of: byteCount) }
        return try await authorization.send(
            guarded(write, in: vault), StepInVault(step: next), in: vault,
            alone: byteCount > Authorization.sharedByteLimit)
    }

    /// Changes rows on the short path, sends two dependent statements, and returns the rows of the first and the last.
    func writeOnShortPath<Write: ShortPath, Next: ItemStep, Last: ItemStep>(
        _ write: Write, followedBy next: Next, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        guard let vault else { return try await authorization.writeOnShortPath(write, followedBy: next, last) }
        // Writers have an allowance for deletions.
        if !write.discarded.isEmpty { return ([], []) }
        return try await authorization.send(
            guarded(write, in: vault), StepInVault(step: next), StepInVault(step: last), in: vault)
    }

    /// Runs `body` in a transaction that has locked the owner's row.
    func transaction<Result>(_ body: (ItemTransaction) async throws -> Result) async throws -> Result {
        guard let vault else {
            return try await authorization.transaction { transaction in
                try await body(ItemTransaction(transaction, of: authorization.accountID))
            }
        }
        return try await transaction(in: vault, discarding: [], body)
    }

    /// Runs `body` in a transaction that has locked a vault's row, and counts what a writer deletes.
    private func transaction<Result>(
        in vault: VaultID, discarding items: [ItemID], _ body: (ItemTransaction) async throws -> Result
    ) async throws -> Result {
        try await authorization.transaction(in: vault, atLeast: .writer) { transaction, seat in
            guard let head, seat.leastHead <= head, head <= seat.headNumber else {
                throw VaultProblem.headMoved(head: seat.headNumber)
            }
            guard seat.role == .writer, !items.isEmpty else {
                return try await body(ItemTransaction(transaction, of: vault))
            }
            let measure = MeasureDiscarded(
                vaultID: vault, accountID: authorization.accountID, items: items, since: now - Discarding.period)
            guard let found = try await transaction.execute(measure).first else { throw VaultProblem.trashFull }
            let result = try await body(ItemTransaction(transaction, of: vault))
            transaction.enqueue(CountDiscarded(measured: measure, found: found, memberID: seat.memberID, now: now))
            return result
        }
    }

    /// Runs `body` in a transaction that has locked the owner's row. `body` receives the rows of `first`.
    ///
    /// - Parameter first: Must return no row if the caller may not change the items.
    func transaction<First: ItemWrite, Result>(
        after first: First, _ body: (ItemTransaction, [First.Row]) async throws -> Result
    ) async throws -> Result {
        guard let vault else {
            return try await authorization.transaction(after: first) { transaction, rows in
                try await body(ItemTransaction(transaction, of: authorization.accountID), rows)
            }
        }
        return try await transaction(in: vault, discarding: first.discarded) { transaction in
            try await body(transaction, try await execute(first, in: transaction))
        }
    }

    /// Changes rows of the owner in a transaction of ``transaction(_:)``.
    func execute<Write: ItemWrite>(_ write: Write, in transaction: ItemTransaction) async throws -> [Write.Row] {
        guard let vault else {
            return try await transaction.transaction.execute(Guarded(caller: authorization.caller, write: write))
        }
        let rows = try await transaction.transaction.execute(guarded(write, in: vault))
        // The caller is a writer with a present head, so the sealed bytes have another key than the present one.
        if rows.isEmpty, case .one = write.sealedKey { throw VaultProblem.staleGeneration }
        return rows
    }

    private func guarded<Write: ItemWrite>(_ write: Write, in vault: VaultID) async throws -> GuardedInVault<Write> {
        let keyID: Int32?
        switch write.sealedKey {
        case .none: keyID = nil
        case .one(let id): keyID = id
        case .others:
            _ = try await authorization.identify()
            throw VaultProblem.wrongFormat
        }
        return GuardedInVault(caller: authorization.caller.in(vault, head: head ?? 0, keyID: keyID), write: write)
    }
}

/// A transaction that has locked the row of the items' owner.
struct ItemTransaction {
    fileprivate let transaction: Transaction
    let owner: OwnerID
    private let isInVault: Bool

    init(_ transaction: Transaction, of account: AccountID) {
        self.transaction = transaction
        owner = OwnerID(account)
        isInVault = false
    }

    init(_ transaction: Transaction, of vault: VaultID) {
        self.transaction = transaction
        owner = OwnerID(vault)
        isInVault = true
    }

    func execute<Step: ItemStep>(_ step: Step) async throws(PostgresError) -> [Step.Row] {
        isInVault ? try await transaction.execute(StepInVault(step: step)) : try await transaction.execute(step)
    }

    /// Sends two statements in one round trip.
    func execute<First: ItemStep, Second: ItemStep>(
        _ first: First, _ second: Second
    ) async throws(PostgresError) -> ([First.Row], [Second.Row]) {
        isInVault
            ? try await transaction.execute(StepInVault(step: first), StepInVault(step: second))
            : try await transaction.execute(first, second)
    }

    /// Sends a statement in the same round trip as the next one or the commit, which also throws its error.
    func enqueue<Step: ItemStep>(_ step: Step) {
        if isInVault { transaction.enqueue(StepInVault(step: step)) } else { transaction.enqueue(step) }
    }

    /// Sends the queued statements, and waits for their end.
    func executeWaiting() async throws(PostgresError) { try await transaction.executeWaiting() }
}

/// Reads an owner's items for the duration of a streamed reply (``AccountReader``).
struct ItemReader: Sendable {
    fileprivate let account: AccountReader
    fileprivate let vault: VaultID?

    /// Reads rows.
    ///
    /// - Throws: `ResponseStreamEnded` if the caller's rights have ended, or a `PostgresError`.
    func read<Read: ItemRead>(_ read: Read) async throws -> [Read.Row] {
        guard let vault else { return try await account.read(read) }
        return try await account.read(OwnedByVault(vaultID: vault, read: read), in: vault)
    }
}
