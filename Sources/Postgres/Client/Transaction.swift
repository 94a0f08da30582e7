internal import EventLoop

/// A transaction in progress, valid until the body that receives it returns.
///
/// It begins with its first statement, in the same round trip.
public final class Transaction {
    private let client: PostgresClient
    private let lease: PostgresLease
    private let isolation: TransactionIsolation
    private var hasBegun = false
    /// The statements to send before the next one.
    private var waiting: [(PostgresConnection, Execution) -> Void] = []

    /// True if tables are distributed over nodes.
    public var isDistributed: Bool { lease.isDistributed }

    init(client: PostgresClient, lease: PostgresLease, isolation: TransactionIsolation) {
        self.client = client
        self.lease = lease
        self.isolation = isolation
    }

    /// Sends one statement and returns its rows.
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        let execution = try await perform { lease.connection.send(statement, for: $0) }
        defer { client.recycle(execution) }
        return try execution.takeRows(of: S.self, at: 0)
    }

    /// Sends several statements together in one round trip.
    public func execute<each S: Statement>(
        _ statement: repeat each S
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        let execution = try await perform { execution in repeat lease.connection.send(each statement, for: execution) }
        defer { client.recycle(execution) }
        var index = 0
        return (repeat try execution.takeNextRows(of: (each S).self, after: &index))
    }

    /// Sends several statements of one type together in one round trip.
    /// - Returns: The rows of each.
    public func execute<S: Statement>(each statements: [S]) async throws(PostgresError) -> [[S.Row]] {
        if statements.isEmpty { return [] }
        let execution = try await perform { execution in
            for statement in statements { lease.connection.send(statement, for: execution) }
        }
        defer { client.recycle(execution) }
        var rows: [[S.Row]] = []
        for index in statements.indices { rows.append(try execution.takeRows(of: S.self, at: index)) }
        return rows
    }

    /// Sends a statement in the same round trip as the next one or the commit, which also throws its error.
    public func enqueue<S: Statement>(_ statement: S) {
        waiting.append { connection, execution in connection.send(statement, for: execution) }
    }

    /// Sends the queued statements, and waits for their end.
    public func executeWaiting() async throws(PostgresError) { client.recycle(try await perform { _ in }) }

    /// Sends the queued statements.
    private func sendWaiting(for execution: Execution) {
        for send in waiting { send(lease.connection, execution) }
        execution.firstResult += waiting.count
    }

    /// Sends BEGIN before the first statements. These are sent again while no result depends on them.
    private func perform(_ send: (Execution) -> Void) async throws(PostgresError) -> Execution {
        for _ in 0..<PostgresClient.attemptLimit {
            let begins = !hasBegun
            let execution = try await lease.perform { execution in
                if begins {
                    hasBegun = true
                    execution.firstResult = isolation.begin(on: lease.connection, for: execution, client.configuration)
                }
                sendWaiting(for: execution)
                send(execution)
            }
            if let execution {
                waiting = []
                return execution
            }
            if !begins { break }
            client.rollBack(lease.connection)
            hasBegun = false
        }
        throw .unavailable(retryAfter: .seconds(1))
    }

    func commit() async throws(PostgresError) {
        if !hasBegun {
            if waiting.isEmpty { return }
            try await executeWaiting()
        }
        let execution = try await lease.perform { execution in
            sendWaiting(for: execution)
            execution.commits = true
            lease.connection.awaitCommit(execution)
            lease.connection.send(Commit(), for: execution)
        }
        // The server did not have the COMMIT statement, so nothing was committed.
        guard let execution else { throw .unavailable(retryAfter: .seconds(1)) }
        defer { client.recycle(execution) }
        // In a failed transaction COMMIT succeeds, and its tag reports the rollback.
        if !execution.hasCommandTag("COMMIT", at: execution.firstResult) {
            throw .server(ServerError(state: .inFailedTransaction, statement: StatementCatalog.name(of: Commit.self)))
        }
    }

    /// Rolls back, unless a request is pending.
    /// - Returns: True if the connection is clean again.
    func rollBack() async -> Bool {
        if !hasBegun { return true }
        guard lease.connection.isOpen, lease.connection.isIdle else { return false }
        do throws(PostgresError) {
            let execution = try await lease.perform(ignoringCancellation: true) {
                lease.connection.send(Rollback(), for: $0)
            }
            guard let execution else { return false }
            client.recycle(execution)
            return true
        } catch {
            return false
        }
    }
}

/// The isolation level of a transaction (PostgreSQL manual, section 13.2).
public enum TransactionIsolation: Sendable {
    case readCommitted, repeatableRead, serializable

    /// Begins a transaction that may wait for locks.
    /// - Returns: The number of results before the caller's own.
    func begin(
        on connection: PostgresConnection, for execution: Execution, _ configuration: PostgresConfiguration
    ) -> Int {
        switch self {
        case .readCommitted: connection.send(BeginReadCommitted(), for: execution)
        case .repeatableRead: connection.send(BeginRepeatableRead(), for: execution)
        case .serializable: connection.send(BeginSerializable(), for: execution)
        }
        connection.setLockTimeout(configuration.lockTimeout)
        connection.send(SetLeaseTimeouts(configuration: configuration, isLocal: true), for: execution)
        return 2
    }
}

extension PostgresClient {
    /// Runs `body` in a transaction on a dedicated connection: commits when it returns, rolls back when it throws.
    ///
    /// Also throws errors of the commit. After ``PostgresError/connectionLost``, ``PostgresError/commitInDoubt`` or
    /// ``PostgresError/cancelled`` from the commit, the transaction may or may not have taken effect. While no commit
    /// ends, transactions at the default isolation, which may write, are rejected.
    /// - Parameters:
    ///   - key: Identifies what it locks or writes. `body` must not start another request with the same key outside the
    /// transaction.
    ///   - use: The expected duration.
    public func withTransaction<Result>(
        key: RequestKey? = nil, use: LeaseUse = .short,
        isolation: TransactionIsolation = .readCommitted,
        _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        loop.preconditionInLoop()
        if case .readCommitted = isolation, pool.commitsAreClosed { throw unavailable() }
        let (lease, held) = try await lease(key: key, use)
        defer { lease.invalidate() }
        let transaction = Transaction(client: self, lease: lease, isolation: isolation)
        do {
            let result = try await body(transaction)
            try await transaction.commit()
            release(lease.connection, reusable: true)
            letGo(held)
            return result
        } catch {
            if await transaction.rollBack() {
                release(lease.connection, reusable: true)
                letGo(held)
            } else {
                giveBack(lease.connection, held)
            }
            throw error
        }
    }
}

private struct BeginReadCommitted: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "BEGIN ISOLATION LEVEL READ COMMITTED"
}

private struct BeginRepeatableRead: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "BEGIN ISOLATION LEVEL REPEATABLE READ"
}

private struct BeginSerializable: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "BEGIN ISOLATION LEVEL SERIALIZABLE"
}

struct Commit: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "COMMIT"
}

struct Rollback: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "ROLLBACK"
}
