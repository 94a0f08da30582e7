import Postgres
import SalternTesting

@testable import SalternServer

/// A row that somebody else holds, as an admin with psql does, or a node that was stopped in the middle of a transaction.
struct HeldRow: Sendable {
    private let transaction: LoopBoundTransaction
    private let app: TestApplication

    /// Carries the transaction between the closures of one test, which run on its loop.
    // Safe to share: used on the loop of its client alone.
    private final class LoopBoundTransaction: @unchecked Sendable {
        let transaction: Transaction
        init(_ transaction: Transaction) { self.transaction = transaction }
    }

    /// Holds an account's row while `body` runs.
    static func account<Result: Sendable>(
        _ account: TestAccount, in app: TestApplication, _ body: @escaping @Sendable (HeldRow) async throws -> Result
    ) async throws -> Result {
        guard let id = AccountID(pathParameter: account.id) else { throw UnexpectedReply(description: account.id) }
        return try await hold(LockAccountWholly(accountID: id), in: app, body)
    }

    /// Holds what a statement locks while `body` runs.
    static func hold<S: Statement, Result: Sendable>(
        _ lock: S, in app: TestApplication, _ body: @escaping @Sendable (HeldRow) async throws -> Result
    ) async throws -> Result {
        try await app.asOwner { postgres in
            try await postgres.withTransaction { transaction in
                _ = try await transaction.execute(lock)
                return try await body(HeldRow(transaction: LoopBoundTransaction(transaction), app: app))
            }
        }
    }

    /// Waits until so many sessions of PostgreSQL wait for it.
    /// - Throws: ``ConditionNeverHeld``.
    func waiters(_ count: Int64) async throws {
        try await eventually { try await waiters() >= count }
    }

    private func waiters() async throws -> Int64 {
        let transaction = transaction.transaction
        guard TestEnvironment.isCluster else { return try await transaction.execute(CountLockWaiters()).first ?? 0 }
        return try await transaction.execute(CountClusterLockWaiters()).first ?? 0
    }

    /// Executes a statement in the transaction that holds the row.
    func execute<S: Statement>(_ statement: S) async throws -> [S.Row] {
        try await transaction.transaction.execute(statement)
    }
}

private struct CountLockWaiters: Statement {
    typealias Row = Int64
    static let sql: SQL<Self> = """
        SELECT count(DISTINCT l.pid) FROM pg_locks l
        WHERE NOT l.granted AND pg_backend_pid() = ANY(pg_blocking_pids(l.pid))
        """
}

/// On a cluster the row is on a worker, and so is who waits for it.
private struct CountClusterLockWaiters: Statement {
    typealias Row = Int64
    static let sql: SQL<Self> = """
        SELECT count(DISTINCT w.waiting_gpid) FROM pg_catalog.citus_lock_waits w
        WHERE w.blocking_gpid = pg_catalog.citus_backend_gpid()
        """
}
