public import EventLoop

/// PostgreSQL as one event loop sees it: a few pipelined connections that the loop's requests share, and others
/// that transactions have for themselves.
///
/// Every function is called on the loop; the client has no lock.
// Safe to share: every entry checks that it is called on the loop's thread, which alone touches the state.
public final class PostgresClient: @unchecked Sendable {
    public let loop: EventLoop

    /// Makes a client and starts to connect. Statements wait for the first connection.
    public init(configuration: PostgresConfiguration, loop: EventLoop) {
        loop.preconditionInLoop()
        self.loop = loop
    }

    /// Sends one statement, closed by its own sync, and returns its rows.
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        throw .unavailable(retryAfter: .seconds(1))
    }

    /// Sends several statements together, closed by one sync: one round trip, one transaction, all or nothing.
    public func execute<each S: Statement>(
        _ statement: repeat each S
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        throw .unavailable(retryAfter: .seconds(1))
    }

    /// Runs `body` in a transaction on a connection of its own: commits when it returns, rolls back when it throws.
    public func withTransaction<Result>(
        isolation: TransactionIsolation = .readCommitted,
        _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        throw PostgresError.unavailable(retryAfter: .seconds(1))
    }

    /// Lends a connection of its own to `body`, without a transaction; for session-level things such as advisory locks.
    public func withConnection<Result>(_ body: (PostgresLease) async throws -> Result) async throws -> Result {
        throw PostgresError.unavailable(retryAfter: .seconds(1))
    }

    /// Whether at least one connection is ready.
    public var isReady: Bool { false }

    /// Refuses new statements, lets those under way finish, and closes every connection.
    public func shutdown() async {}
}

public enum TransactionIsolation: Sendable { case readCommitted, repeatableRead, serializable }

/// A transaction that is under way; valid until the body of ``PostgresClient/withTransaction(isolation:_:)`` returns.
public struct Transaction {
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        throw .unavailable(retryAfter: .seconds(1))
    }
    public func execute<each S: Statement>(
        _ statement: repeat each S
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        throw .unavailable(retryAfter: .seconds(1))
    }
}

/// A connection that its holder has for itself.
public struct PostgresLease {
    public func execute<S: Statement>(_ statement: S) async throws(PostgresError) -> [S.Row] {
        throw .unavailable(retryAfter: .seconds(1))
    }
    public func execute<each S: Statement>(
        _ statement: repeat each S
    ) async throws(PostgresError) -> (repeat [(each S).Row]) {
        throw .unavailable(retryAfter: .seconds(1))
    }
}
