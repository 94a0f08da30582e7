/// A transaction that is under way; valid until the body it was given to returns.
///
/// It begins with its first statement, in the same round trip.
public final class Transaction {
    private let client: PostgresClient
    private let lease: PostgresLease
    private let isolation: TransactionIsolation
    private var hasBegun = false

    init(client: PostgresClient, lease: PostgresLease, isolation: TransactionIsolation) {
        self.client = client
        self.lease = lease
        self.isolation = isolation
    }

    /// Sends one statement and returns its rows.
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        var index = 0
        let execution = try await lease.perform { execution in
            index = begin(with: execution)
            lease.connection.send(statement, for: execution)
        }
        defer { client.finish(execution) }
        return try execution.takeRows(of: S.self, at: index)
    }

    /// Sends several statements together in one round trip.
    public func execute<each S: Statement>(
        _ statement: repeat each S
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        var index = 0
        let execution = try await lease.perform { execution in
            index = begin(with: execution)
            repeat lease.connection.send(each statement, for: execution)
        }
        defer { client.finish(execution) }
        return (repeat try execution.takeNextRows(of: (each S).self, after: &index))
    }

    /// Sends the beginning ahead of the first statement.
    /// - Returns: how many results come before the caller's own.
    private func begin(with execution: Execution) -> Int {
        if hasBegun { return 0 }
        hasBegun = true
        switch isolation {
        case .readCommitted: lease.connection.send(BeginReadCommitted(), for: execution)
        case .repeatableRead: lease.connection.send(BeginRepeatableRead(), for: execution)
        case .serializable: lease.connection.send(BeginSerializable(), for: execution)
        }
        return 1
    }

    func commit() async throws(PostgresError) {
        if !hasBegun { return }
        let execution = try await lease.perform { lease.connection.send(Commit(), for: $0) }
        defer { client.finish(execution) }
        // In a failed transaction COMMIT succeeds, and says that it has rolled back.
        if !execution.hasCommandTag("COMMIT", at: 0) {
            throw .server(ServerError(state: .inFailedTransaction, statement: StatementCatalog.name(of: Commit.self)))
        }
    }

    /// - Returns: whether the connection is clean again.
    func rollBack() async -> Bool {
        if !hasBegun { return true }
        // A statement whose task has gone is still under way: the session's state is anybody's guess.
        guard lease.connection.isOpen, lease.connection.isIdle else { return false }
        do throws(PostgresError) {
            client.finish(
                try await lease.perform(ignoringCancellation: true) { lease.connection.send(Rollback(), for: $0) })
            return true
        } catch {
            return false
        }
    }
}

/// How far a transaction is kept apart from others (PostgreSQL manual, section 13.2).
public enum TransactionIsolation: Sendable {
    case readCommitted, repeatableRead, serializable
}

extension PostgresClient {
    /// Runs `body` in a transaction on a connection of its own: commits when it returns, rolls back when it throws.
    ///
    /// An error of the commit is thrown too; after ``PostgresError/connectionLost`` or ``PostgresError/cancelled`` from
    /// it, nobody knows whether the transaction took effect.
    public func withTransaction<Result>(
        isolation: TransactionIsolation = .readCommitted,
        _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        let lease = PostgresLease(client: self, connection: try await lease())
        defer { lease.invalidate() }
        let transaction = Transaction(client: self, lease: lease, isolation: isolation)
        do {
            let result = try await body(transaction)
            try await transaction.commit()
            release(lease.connection, reusable: true)
            return result
        } catch {
            let isClean = await transaction.rollBack()
            release(lease.connection, reusable: isClean)
            throw error
        }
    }
}

private struct BeginReadCommitted: Statement {
    typealias Row = Void
    static let sql = "BEGIN ISOLATION LEVEL READ COMMITTED"
}

private struct BeginRepeatableRead: Statement {
    typealias Row = Void
    static let sql = "BEGIN ISOLATION LEVEL REPEATABLE READ"
}

private struct BeginSerializable: Statement {
    typealias Row = Void
    static let sql = "BEGIN ISOLATION LEVEL SERIALIZABLE"
}

private struct Commit: Statement {
    typealias Row = Void
    static let sql = "COMMIT"
}

private struct Rollback: Statement {
    typealias Row = Void
    static let sql = "ROLLBACK"
}
