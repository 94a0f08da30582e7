public import EventLoop

/// Brings a database's schema to the state that the given migrations describe.
///
/// Its functions may be called from any task; the work is done on the loop, on a connection of its own. Who is cancelled closes
/// it: what was not committed is not done.
public struct Migrator: Sendable {
    private let configuration: PostgresConfiguration
    private let migrations: [Migration]
    let placements: [TablePlacement]
    private let loop: EventLoop
    /// How long somebody may read the history of an earlier release without a break, before ``up()`` gives up.
    var historyPatience = Duration.seconds(30)
    /// Between two attempts, in which everybody else gets at it.
    private static let historyInterval = Duration.seconds(1)

    /// Works as the owner for ``up()``; for the other functions the server's role is enough, if it may read the history.
    /// - Parameter placements: Where the tables of a distributed database are, companions first.
    /// - Throws: ``MigrationError/invalidMigrations(_:)`` unless the versions are 1, 2, 3, ….
    public init(
        configuration: PostgresConfiguration, migrations: [Migration], placements: [TablePlacement] = [],
        loop: EventLoop
    ) throws(MigrationError) {
        for (index, migration) in migrations.enumerated() where migration.version != index + 1 {
            throw .invalidMigrations(
                "migration \(migration.version) (\(migration.name)) stands where \(index + 1) belongs")
        }
        self.configuration = configuration
        self.migrations = migrations
        self.placements = placements
        self.loop = loop
    }

    /// Applies what is missing, each migration in a transaction of its own, and on a distributed database places the tables
    /// that are new. Several nodes may call it at once. Those of the last release that take away what the one before needs
    /// are left for ``finish()``.
    @discardableResult
    public func up() async throws(MigrationError) -> SchemaUpgrade {
        try await apply { $0.missing }
    }

    /// Applies the rest, when no node of the release before runs any more.
    @discardableResult
    public func finish() async throws(MigrationError) -> SchemaUpgrade {
        try await apply { $0.unfinished }
    }

    private func apply(
        _ pending: @escaping @Sendable (MigrationHistory) -> [Migration]
    ) async throws(MigrationError) -> SchemaUpgrade {
        try await withConnection { connection throws(MigrationError) in
            try await lock(connection)
            let history = try await readHistory(connection)
            guard history.obstacles.isEmpty else { throw .findings(history.obstacles) }
            let pending = pending(history)
            for migration in pending { try await apply(migration, on: connection) }
            return SchemaUpgrade(migrations: pending, placed: try await placeNewTables(on: connection))
        }
    }

    /// Waits until nobody else migrates, for as long as the connection lives.
    func lock(_ connection: ScriptConnection) async throws(MigrationError) {
        try await asking { () async throws(PostgresError) in
            // What waits or works for a command that has ended would be in the next one's way.
            try await connection.run(
                "SET statement_timeout = 0; SET lock_timeout = 0; SET client_connection_check_interval = '1s'")
            _ = try await connection.execute(MigrationStatements.Lock())
        }
        try await makeHistory(on: connection)
        try await asking { () async throws(PostgresError) in
            // A migration that cannot get its lock gives up, rather than stop everybody who queues behind it. The other
            // setting has a meaning on a cluster only: there a transaction may change several tables.
            try await connection.run("SET lock_timeout = '30s'; SET citus.multi_shard_modify_mode = 'sequential'")
        }
    }

    /// Makes the history's table what it has to be. One that is so already is not touched: whoever waits for it alone has
    /// every server wait behind him.
    private func makeHistory(on connection: ScriptConnection) async throws(MigrationError) {
        let started = ContinuousClock.now
        while true {
            do throws(PostgresError) {
                let found = try await connection.execute(MigrationStatements.FindHistory())
                if found.contains(where: \.isWide) { return }
                let isThere = found.contains(where: \.exists)
                return try await connection.run(
                    isThere ? MigrationStatements.widenHistory : MigrationStatements.createHistory)
            } catch {
                guard error.sqlState == .lockNotAvailable else { throw .database(error) }
                if ContinuousClock.now - started >= historyPatience { throw .historyIsHeld }
            }
            do {
                try await Task.sleep(for: Self.historyInterval)
            } catch {
                throw .database(.cancelled)
            }
        }
    }

    func readHistory(_ connection: ScriptConnection) async throws(MigrationError) -> MigrationHistory {
        try await asking { () async throws(PostgresError) in
            MigrationHistory(
                known: migrations, applied: try await connection.execute(MigrationStatements.ReadHistory()))
        }
    }

    private func apply(_ migration: Migration, on connection: ScriptConnection) async throws(MigrationError) {
        do throws(PostgresError) {
            try await connection.run("BEGIN")
            try await connection.run(migration.sql)
            guard connection.isInTransaction else {
                throw .configuration("")
            }
            _ = try await connection.execute(MigrationStatements.Record(migration: migration))
            try await connection.run("COMMIT")
        } catch .configuration {
            throw .endedTransaction(version: migration.version, name: migration.name)
        } catch {
            // The connection closes next, and the transaction with it.
            throw .failed(version: migration.version, name: migration.name, error)
        }
    }

    /// Every migration, known or applied, in order of version.
    public func status() async throws(MigrationError) -> [MigrationStatus] {
        try await history().status
    }

    /// What is wrong with the database's schema history, and on a distributed database with the places of its tables; empty
    /// when all is well.
    public func verify() async throws(MigrationError) -> [MigrationFinding] {
        try await withConnection { connection throws(MigrationError) in
            try await history(on: connection).findings + unplaced(on: connection)
        }
    }

    /// What keeps a program with these migrations from being used with the database's schema.
    public func incompatibilities() async throws(MigrationError) -> [MigrationFinding] {
        try await history().incompatibilities
    }

    /// Refuses a schema that does not fit: older than these migrations, so new that they do not suffice, or made by others.
    /// - Throws: ``MigrationError/findings(_:)``, whose description says what to do.
    public func requireCompatible() async throws(MigrationError) {
        let findings = try await incompatibilities()
        guard findings.isEmpty else { throw .findings(findings) }
    }

    private func history() async throws(MigrationError) -> MigrationHistory {
        try await withConnection { connection throws(MigrationError) in try await history(on: connection) }
    }

    private func history(on connection: ScriptConnection) async throws(MigrationError) -> MigrationHistory {
        try await asking { () async throws(PostgresError) in
            guard try await connection.execute(MigrationStatements.FindHistory()).contains(where: \.exists) else {
                return MigrationHistory(known: migrations, applied: [])
            }
            return MigrationHistory(
                known: migrations, applied: try await connection.execute(MigrationStatements.ReadHistory()))
        }
    }

    func withConnection<Result: Sendable>(
        _ body: @escaping @Sendable (ScriptConnection) async throws(MigrationError) -> Result
    ) async throws(MigrationError) -> Result {
        try await loop.run { () async throws(MigrationError) in
            let connection = try await asking { () async throws(PostgresError) in
                try await ScriptConnection.open(configuration, loop: loop)
            }
            defer { connection.close() }
            let closing = LoopBound(connection, loop: loop)
            let result = await withTaskCancellationHandler {
                do throws(MigrationError) {
                    return Swift.Result<Result, MigrationError>.success(try await body(connection))
                } catch {
                    return .failure(error)
                }
            } onCancel: {
                loop.schedule { closing.value.close() }
            }
            return try result.get()
        }
    }

    func asking<Result>(
        _ body: () async throws(PostgresError) -> Result
    ) async throws(MigrationError) -> Result {
        do throws(PostgresError) {
            return try await body()
        } catch {
            throw .database(error)
        }
    }
}
