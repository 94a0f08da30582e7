public import EventLoop

/// Brings a database's schema to the state that the given migrations describe.
///
/// Its functions may be called from any task; the work is done on the loop, on a connection of its own. Who is cancelled closes
/// it: what was not committed is not done.
public struct Migrator: Sendable {
    private let configuration: PostgresConfiguration
    private let migrations: [Migration]
    let placements: [TablePlacement]
    private let parts: SchemaParts?
    private let loop: EventLoop
    /// How long somebody may hold what ``up()`` needs without a break, before it gives up.
    var patience = Duration.seconds(30)
    /// Between two attempts, in which everybody else gets at it.
    private static let historyInterval = Duration.seconds(1)
    private static let lockInterval = Duration.seconds(3)

    /// Works as the owner for ``up()``; for the other functions the server's role is enough, if it may read the history.
    /// - Parameters:
    ///   - placements: Where the tables of a distributed database are, companions first.
    ///   - parts: What all of the migrations make, for ``verify(rightsOf:)``.
    /// - Throws: ``MigrationError/invalidMigrations(_:)`` unless the versions are 1, 2, 3, ….
    public init(
        configuration: PostgresConfiguration, migrations: [Migration], placements: [TablePlacement] = [],
        parts: SchemaParts? = nil, loop: EventLoop
    ) throws(MigrationError) {
        for (index, migration) in migrations.enumerated() where migration.version != index + 1 {
            throw .invalidMigrations(
                "migration \(migration.version) (\(migration.name)) stands where \(index + 1) belongs")
        }
        self.configuration = configuration
        self.migrations = migrations
        self.placements = placements
        self.parts = parts
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
        let findings = try await encodingFindings(on: connection)
        guard findings.isEmpty else { throw .findings(findings) }
        try await asking { () async throws(PostgresError) in
            // What waits or works for a command that has ended would be in the next one's way.
            try await connection.run(
                "SET statement_timeout = 0; SET lock_timeout = 0; SET client_connection_check_interval = '1s'; "
                    + "SET default_transaction_isolation = 'read committed'; SET client_min_messages = 'warning'")
            try await connection.run(PostgresConfiguration.sessionScript)
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
                if ContinuousClock.now - started >= patience { throw .historyIsHeld }
            }
            try await pause(Self.historyInterval)
        }
    }

    func readHistory(_ connection: ScriptConnection) async throws(MigrationError) -> MigrationHistory {
        try await asking { () async throws(PostgresError) in
            MigrationHistory(
                known: migrations, applied: try await connection.execute(MigrationStatements.ReadHistory()))
        }
    }

    /// Applies it when nobody holds what it needs. Whoever comes while it waits for a lock queues behind it: so it waits for a
    /// moment only, and lets everybody pass before it tries again.
    private func apply(_ migration: Migration, on connection: ScriptConnection) async throws(MigrationError) {
        let started = ContinuousClock.now
        while true {
            do throws(MigrationError) {
                return try await attempt(migration, on: connection)
            } catch {
                guard case .failed(_, _, let reason) = error, reason.sqlState == .lockNotAvailable,
                    ContinuousClock.now - started < patience
                else { throw error }
            }
            try await asking { () async throws(PostgresError) in try await connection.run("ROLLBACK") }
            try await pause(Self.lockInterval)
        }
    }

    private func attempt(_ migration: Migration, on connection: ScriptConnection) async throws(MigrationError) {
        do throws(PostgresError) {
            // Longer than PostgreSQL takes to end a vacuum that is in the way (deadlock_timeout).
            try await connection.run("BEGIN; SET LOCAL lock_timeout = '1500ms'")
            // One by one: a cluster hands a statement to its nodes as the text in which it has come.
            for statement in ScriptText.statements(of: migration.sql) {
                try await connection.run(String(statement))
                guard connection.isInTransaction else { throw .configuration("") }
            }
            _ = try await connection.execute(MigrationStatements.Record(migration: migration))
            try await connection.run("COMMIT")
        } catch .configuration {
            throw .endedTransaction(version: migration.version, name: migration.name)
        } catch {
            // What was begun is rolled back, or the connection closes next, and the transaction with it.
            throw .failed(version: migration.version, name: migration.name, error)
        }
    }

    private func pause(_ duration: Duration) async throws(MigrationError) {
        do {
            try await Task.sleep(for: duration)
        } catch {
            throw .database(.cancelled)
        }
    }

    /// Every migration, known or applied, in order of version.
    public func status() async throws(MigrationError) -> [MigrationStatus] {
        try await history().status
    }

    /// What is wrong with the database's schema history, and on a distributed database with the places of its tables; and
    /// what of the schema is missing though its migrations were applied. Empty when all is well.
    /// - Parameter role: Who has to have the rights that the migrations grant to the server's role; nil for who asks.
    public func verify(rightsOf role: String?) async throws(MigrationError) -> [MigrationFinding] {
        try await withConnection { connection throws(MigrationError) in
            let findings = try await encodingFindings(on: connection) + history(on: connection).findings
            // What is not applied is missing, and what is ahead may have been changed.
            let missing = findings.isEmpty ? try await missingParts(rightsOf: role, on: connection) : []
            return try await findings + unplaced(on: connection) + missing
        }
    }

    private func missingParts(
        rightsOf role: String?, on connection: ScriptConnection
    ) async throws(MigrationError) -> [MigrationFinding] {
        guard let parts else { return [] }
        let found = try await asking { () async throws(PostgresError) in
            // For the transaction only: behind a pooler the session is not this connection's own.
            try await connection.run("BEGIN")
            try await connection.run(SessionSettings.query(isLocal: true).text)
            let found = try await connection.execute(FindSchemaParts(role: role))
            try await connection.run("COMMIT")
            return found
        }
        let missing = parts.missing(from: found)
        return missing.isEmpty ? [] : [.lacks(missing)]
    }

    /// What keeps a program with these migrations from being used with the database's schema.
    public func incompatibilities() async throws(MigrationError) -> [MigrationFinding] {
        try await withConnection { connection throws(MigrationError) in
            try await encodingFindings(on: connection) + history(on: connection).incompatibilities
        }
    }

    /// The finding that the database's encoding cannot hold every text, in an array of none or one.
    private func encodingFindings(on connection: ScriptConnection) async throws(MigrationError) -> [MigrationFinding] {
        let encoding = try await asking { () async throws(PostgresError) in
            try await connection.execute(FindEncoding()).first
        }
        guard let encoding, encoding != FindEncoding.needed else { return [] }
        return [.unsuitableEncoding(encoding)]
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
