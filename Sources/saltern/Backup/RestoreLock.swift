import CommandLineKit
import Postgres

/// Whoever restores a database, or finishes a restore of it, has its lock meanwhile, so that there is one at a time.
///
/// It is held by a transaction on a connection of its own, also through a pooler that exchanges sessions, and nothing else is
/// done there: the lock goes with the process that has it, however that ends.
enum RestoreLock {
    /// Runs `body` with the lock.
    /// - Throws: ``CommandFailure`` when somebody else has it, or what `body` throws.
    static func holding<Result>(_ console: Console, _ body: () async throws -> Result) async throws -> Result {
        let (taken, takes) = AsyncStream.makeStream(of: Void.self)
        let (over, ends) = AsyncStream.makeStream(of: Void.self)
        async let holder: Void = hold(console, takes, until: over)
        var isHeld = false
        for await _ in taken { isHeld = true }
        guard isHeld else {
            try await holder
            throw CommandFailure("the lock of restores was not to be had")
        }
        let result = try await body()
        ends.finish()
        // All is done, also when the connection is gone by now.
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

/// Takes the lock unless somebody has it. The connection is idle for as long as a restore takes; a machine that went without
/// a word is noticed after a minute.
private struct TakeRestoreLock: Statement {
    /// Whether it is taken now.
    typealias Row = Bool

    static let sql: SQL<Self> = """
        SELECT pg_catalog.pg_try_advisory_xact_lock(\(restoreLockKey)),
            pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true),
            pg_catalog.set_config('tcp_keepalives_idle', '30', true),
            pg_catalog.set_config('tcp_keepalives_interval', '10', true),
            pg_catalog.set_config('tcp_keepalives_count', '3', true)
        """
}

/// The server process of whoever has the lock.
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
