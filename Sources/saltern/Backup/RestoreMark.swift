import CommandLineKit
import Postgres
import SalternServer

/// The mark that keeps servers away from a database while it is restored (``UnfinishedRestore``).
enum RestoreMark {
    /// Makes it.
    /// - Throws: ``CommandFailure`` when there is something that a restore would be mixed with.
    static func make(_ console: Console) async throws {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            let encoding = try await database.execute(FindEncoding()).first ?? ""
            guard encoding == FindEncoding.needed else {
                throw CommandFailure(
                    "nothing was changed: the database's encoding is \(encoding) and has to be UTF8: CREATE DATABASE … "
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
                    "\(DatabaseCommand.ownerVariable(console)): its role may not make schemas in the database, so nothing was "
                        + "changed: ALTER DATABASE … OWNER TO that role, or GRANT CREATE ON DATABASE … to it")
            }
        }
    }

    /// Whether a restore is under way, or was not finished: no server uses the database.
    static func isThere(_ console: Console) async throws -> Bool {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { try await isThere(in: $0) }
    }

    static func isThere(in database: PostgresClient) async throws -> Bool {
        try await database.execute(FindSchemas()).first?.hasMark ?? false
    }

    /// Refuses to make a schema where a restore is about to bring one back, which could not follow it.
    static func requireNothingAwaited(_ console: Console) async throws {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            guard let found = try await database.execute(FindSchemas()).first, found.hasMark, !found.hasSchema else {
                return
            }
            throw CommandFailure(
                "a restore of the database has brought nothing back yet: if none is under way, restore again, or remove the "
                    + "schema saltern_restoring to begin with an empty database")
        }
    }

    /// Removes it: all is done.
    static func remove(_ console: Console) async throws {
        try await DatabaseCommand.asOwner(console, needsSchema: false) { database in
            guard try await isThere(in: database) else { return }
            try await database.withTransaction { _ = try await $0.execute(RemoveMark()) }
        }
    }

    /// Removes it, unless something has come back, or may come back still.
    ///
    /// Whoever restores has made the schema before it commits, and another one of the same name waits for it: as long as
    /// PostgreSQL has not noticed that nobody is there any more, or by a commit whose answer did not arrive.
    /// - Returns: Whether the mark is gone.
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

/// Somebody who has pressed Ctrl-C waits meanwhile.
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
