import CommandLineKit
import Postgres
import SalternServer

/// The mark that keeps servers from using a database during its restore (``UnfinishedRestore``).
enum RestoreMark {
    /// Sets the mark.
    /// - Throws: ``CommandFailure`` when the database has content that a restore would mix with.
    static func make(_ console: Console) async throws {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            let encoding = try await database.execute(FindEncoding()).first ?? ""
            guard encoding == FindEncoding.needed else {
                throw CommandFailure(
                    "nothing was changed: the database's encoding is \(encoding) and must be UTF8: CREATE DATABASE … "
                        + "ENCODING 'UTF8' TEMPLATE template0")
            }
            let found = try await database.execute(FindSchemas()).first
            if found?.hasSchema ?? false {
                guard !(found?.hasMark ?? false) else { throw CommandFailure("\(UnfinishedRestore())") }
                throw CommandFailure(
                    "the database has a schema saltern already: nothing was changed; rename or drop it")
            }
            do {
                try await database.withTransaction { _ = try await $0.execute(MakeMark()) }
            } catch let error as PostgresError where error.sqlState == .insufficientPrivilege {
                throw CommandFailure(
                    "\(DatabaseCommand.ownerSetting(console)): its role may not create schemas in the database, so nothing was "
                        + "changed: ALTER DATABASE … OWNER TO that role, or GRANT CREATE ON DATABASE … to it")
            }
        }
    }

    /// Returns true if a restore is running or unfinished. No server uses the database then.
    static func isThere(_ console: Console) async throws -> Bool {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { try await isThere(in: $0) }
    }

    static func isThere(in database: PostgresClient) async throws -> Bool {
        try await database.execute(FindSchemas()).first?.hasMark ?? false
    }

    /// Rejects creating a schema in a database that awaits a restore, which would then fail.
    static func requireNothingAwaited(_ console: Console) async throws {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            guard let found = try await database.execute(FindSchemas()).first, found.hasMark, !found.hasSchema else {
                return
            }
            throw CommandFailure(
                "a restore of the database has restored nothing yet: if none is running, restore again, or remove the "
                    + "schema saltern_restoring to begin with an empty database")
        }
    }

    /// Removes the mark after a complete restore.
    static func remove(_ console: Console) async throws {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            guard try await isThere(in: database) else { return }
            try await database.withTransaction { _ = try await $0.execute(RemoveMark()) }
        }
    }

    /// Removes the mark, unless something was or may still be restored.
    ///
    /// A restore has created the schema before its commit, and creating another one of the same name waits for it. This
    /// covers a disconnected client that PostgreSQL has not detected yet, and a commit without a reply.
    /// - Returns: True if the mark is gone.
    static func removeIfUnused(_ console: Console) async -> Bool {
        do {
            try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
                try await database.withTransaction { transaction in
                    _ = try await transaction.execute(LimitWait(), MakeSchema())
                    _ = try await transaction.execute(RemoveSchema(), RemoveMark())
                }
            }
            return true
        } catch {
            return false
        }
    }
}

private struct FindSchemas: Statement {
    struct Row: DecodableRow {
        let hasSchema: Bool
        let hasMark: Bool

        init(row: inout RowReader) throws(PostgresError) {
            hasSchema = try row.next()
            hasMark = try row.next()
        }
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT pg_catalog.to_regnamespace('saltern') IS NOT NULL, \(UnfinishedRestore.isMarked)
        """
}

private struct MakeMark: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "CREATE SCHEMA IF NOT EXISTS saltern_restoring"
}

private struct RemoveMark: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "DROP SCHEMA IF EXISTS saltern_restoring"
}

/// A user who has pressed Ctrl-C waits meanwhile.
private struct LimitWait: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "SET LOCAL lock_timeout = '1s'"
}

private struct MakeSchema: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "CREATE SCHEMA saltern"
}

private struct RemoveSchema: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "DROP SCHEMA saltern"
}

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
