internal import HTTPCore
internal import Postgres

/// Reads and changes the items of one owner with the rights of a request.
///
/// Endpoints of items have no other access to the database.
struct ItemAccess {
    private let authorization: Authorization

    /// Creates the access to the items of the caller's account.
    init(_ authorization: Authorization) { self.authorization = authorization }

    var owner: OwnerID { OwnerID(authorization.accountID) }

    /// The time of the request.
    var now: Timestamp { authorization.now }

    /// The start of the interval between versions (``Caller/keptSince``).
    var keptSince: Timestamp { authorization.keptSince }

    /// Reads with the request's rights while the reply is sent.
    var reader: ItemReader { ItemReader(account: authorization.reader) }

    /// Reads rows of the owner.
    ///
    /// - Throws: ``Unauthenticated`` if the session is not live, or a `PostgresError`. The other functions as well.
    func read<Read: ItemRead>(_ read: Read) async throws -> [Read.Row] { try await authorization.read(read) }

    /// Changes rows of the owner.
    func write<Write: ItemWrite>(_ write: Write) async throws -> [Write.Row] { try await authorization.write(write) }

    /// Changes rows of the owner, sends two dependent statements, and returns the rows of the first and the last.
    func write<Write: ItemWrite, Next: ItemStep, Last: ItemStep>(
        _ write: Write, followedBy next: Next, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        try await authorization.write(write, followedBy: next, last)
    }

    /// Changes rows of the owner if the short path of `write` applies.
    ///
    /// - Returns: No rows if nothing was changed, for any reason. The caller then sends the full statement.
    func writeOnShortPath<Write: ShortPath>(_ write: Write) async throws -> [Write.Row] {
        try await authorization.writeOnShortPath(write)
    }

    /// Changes rows on the short path, and sends one dependent statement in the same transaction.
    ///
    /// - Parameters:
    ///   - next: Must change nothing unless `write` has.
    ///   - byteCount: Sealed bytes in the parameters of `next`.
    func writeOnShortPath<Write: ShortPath, Next: ItemStep>(
        _ write: Write, followedBy next: Next, of byteCount: Int
    ) async throws -> [Write.Row] {
        try await authorization.writeOnShortPath(write, followedBy: next, of: byteCount)
    }

    /// Changes rows on the short path, sends two dependent statements, and returns the rows of the first and the last.
    func writeOnShortPath<Write: ShortPath, Next: ItemStep, Last: ItemStep>(
        _ write: Write, followedBy next: Next, _ last: Last
    ) async throws -> (first: [Write.Row], last: [Last.Row]) {
        try await authorization.writeOnShortPath(write, followedBy: next, last)
    }

    /// Runs `body` in a transaction that has locked the owner's row.
    func transaction<Result>(_ body: (ItemTransaction) async throws -> Result) async throws -> Result {
        try await authorization.transaction { transaction in
            try await body(ItemTransaction(transaction, caller: authorization.caller))
        }
    }

    /// Runs `body` in a transaction that has locked the owner's row. `body` receives the rows of `first`, which is sent
    /// in the same round trip as the lock.
    ///
    /// - Parameter first: Must return no row if the caller may not change the items.
    func transaction<First: ItemWrite, Result>(
        after first: First, _ body: (ItemTransaction, [First.Row]) async throws -> Result
    ) async throws -> Result {
        try await authorization.transaction(after: first) { transaction, rows in
            try await body(ItemTransaction(transaction, caller: authorization.caller), rows)
        }
    }
}

/// A transaction that has locked the row of the items' owner.
struct ItemTransaction {
    private let transaction: Transaction
    private let caller: Caller

    init(_ transaction: Transaction, caller: Caller) {
        self.transaction = transaction
        self.caller = caller
    }

    var owner: OwnerID { OwnerID(caller.accountID) }

    func execute<Write: ItemWrite>(_ write: Write) async throws(PostgresError) -> [Write.Row] {
        try await transaction.execute(Guarded(caller: caller, write: write))
    }

    func execute<Step: ItemStep>(_ step: Step) async throws(PostgresError) -> [Step.Row] {
        try await transaction.execute(step)
    }

    /// Sends two statements in one round trip.
    func execute<First: ItemStep, Second: ItemStep>(
        _ first: First, _ second: Second
    ) async throws(PostgresError) -> ([First.Row], [Second.Row]) {
        try await transaction.execute(first, second)
    }

    /// Sends a statement in the same round trip as the next one or the commit, which also throws its error.
    func enqueue<Step: ItemStep>(_ step: Step) { transaction.enqueue(step) }

    /// Sends the queued statements, and waits for their end.
    func executeWaiting() async throws(PostgresError) { try await transaction.executeWaiting() }
}

/// Reads an owner's items for the duration of a streamed reply (``AccountReader``).
struct ItemReader: Sendable {
    fileprivate let account: AccountReader

    /// Reads rows.
    ///
    /// - Throws: `ResponseStreamEnded` if the caller's rights have ended, or a `PostgresError`.
    func read<Read: ItemRead>(_ read: Read) async throws -> [Read.Row] { try await account.read(read) }
}
