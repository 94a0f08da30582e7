import CommandLineKit
import Postgres

/// The lock of a database that is held during a restore and its completion, so that one restore runs at a time.
///
/// A transaction on a separate connection holds it, also through a pooler that exchanges sessions. The connection has
/// no other use, so the lock ends with its process, however that ends.
enum RestoreLock {
    /// Runs `body` with the lock.
    /// - Throws: ``CommandFailure`` when another process has it, or the error of `body`.
    static func holding<Result>(_ console: Console, _ body: () async throws -> Result) async throws -> Result {
        let (taken, takes) = AsyncStream.makeStream(of: Void.self)
        let (over, ends) = AsyncStream.makeStream(of: Void.self)
        async let holder: Void = hold(console, takes, until: over)
        var isHeld = false
        for await _ in taken { isHeld = true }
        guard isHeld else {
            try await holder
            throw CommandFailure("the lock of restores could not be acquired")
        }
        let result = try await body()
        ends.finish()
        // The work is complete, even if the connection was lost meanwhile.
        try? await holder
        return result
    }

    private static func hold(
        _ console: Console, _ takes: AsyncStream<Void>.Continuation, until over: AsyncStream<Void>
    ) async throws {
        defer { takes.finish() }
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            try await database.withTransaction { transaction in
                guard try await transaction.execute(TakeRestoreLock()).first ?? false else {
                    let holder = try await transaction.execute(FindRestoreLock()).first
                    let name = holder.map { " (process \($0) of PostgreSQL)" } ?? ""
                    throw CommandFailure("a restore of the database is under way\(name): nothing was changed")
                }
                takes.yield()
                takes.finish()
                for await _ in over {}
            }
        }
    }
}

/// Takes the lock if it is free. The connection is idle for the duration of a restore.
///
/// A machine that disappears is detected after a minute.
private struct TakeRestoreLock: Statement {
    /// True if it was taken.
    typealias Row = Bool

    static let sql: SQL<Self> = """
        SELECT pg_catalog.pg_try_advisory_xact_lock(\(restoreLockKey)),
            pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true),
            pg_catalog.set_config('tcp_keepalives_idle', '30', true),
            pg_catalog.set_config('tcp_keepalives_interval', '10', true),
            pg_catalog.set_config('tcp_keepalives_count', '3', true)
        """
}

/// Returns the server process that holds the lock.
private struct FindRestoreLock: Statement {
    typealias Row = Int32

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
        WHERE d.datname = pg_catalog.current_database() AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND (l.classid::bigint << 32) + l.objid::bigint = \(restoreLockKey)
        """
}

/// "restore" in ASCII.
private let restoreLockKey: Int64 = 0x72_6573_746f_7265
