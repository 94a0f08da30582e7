public import EventLoop

/// Applies migrations to a database's schema.
///
/// Its functions may be called from any task. They work on the loop, on a connection of their own. A cancellation
/// closes the connection, which discards uncommitted changes.
public struct Migrator: Sendable {
    private let configuration: PostgresConfiguration
    private let migrations: [Migration]
    let placements: [TablePlacement]
    private let parts: SchemaParts?
    private let loop: EventLoop
    /// The maximum time for which other sessions may block ``up()`` without a break.
    var patience = Duration.seconds(30)
    /// The pause between two attempts, in which other sessions proceed.
    private static let historyInterval = Duration.seconds(1)
    private static let lockInterval = Duration.seconds(3)

    /// Makes a migrator. ``up()`` needs the owner's role; the server's role suffices for the rest if it may read the
    /// history.
    /// - Parameters:
    ///   - placements: The tables' placement in a distributed database, companions first.
    ///   - parts: The objects that all migrations together create, for ``verify(rightsOf:)``.
    /// - Throws: ``MigrationError/invalidMigrations(_:)`` unless the versions are 1, 2, 3, ….
    public init(
        configuration: PostgresConfiguration, migrations: [Migration], placements: [TablePlacement] = [],
        parts: SchemaParts? = nil, loop: EventLoop
    ) throws(MigrationError) {
        for (index, migration) in migrations.enumerated() where migration.version != index + 1 {
            throw .invalidMigrations(
                "migration \(migration.version) (\(migration.name)) is at the position of migration \(index + 1)")
        }
        self.configuration = configuration
        self.migrations = migrations
        self.placements = placements
        self.parts = parts
        self.loop = loop
    }

    /// Applies missing migrations, each in its own transaction, and places new tables on a distributed database.
    ///
    /// Several nodes may call it at the same time. The final finishing migrations, which remove objects that the
    /// previous release needs, are left to ``finish()``.
    @discardableResult
    public func up() async throws(MigrationError) -> SchemaUpgrade {
        try await apply { $0.missing }
    }

    /// Applies the rest. No node may run the previous release any more.
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

    /// Waits until no other session migrates, and locks migrations for as long as the connection lives.
    func lock(_ connection: ScriptConnection) async throws(MigrationError) {
        let findings = try await encodingFindings(on: connection)
        guard findings.isEmpty else { throw .findings(findings) }
        try await asking { () async throws(PostgresError) in
            // Statements of an ended command would otherwise block the next one.
            try await connection.run(
                "SET statement_timeout = 0; SET lock_timeout = 0; SET client_connection_check_interval = '1s'; "
                    + "SET default_transaction_isolation = 'read committed'; SET client_min_messages = 'warning'")
            try await connection.run(PostgresConfiguration.sessionScript)
            _ = try await connection.execute(MigrationStatements.Lock())
        }
        try await makeHistory(on: connection)
        try await asking { () async throws(PostgresError) in
            // A migration without its lock gives up, so that it does not block the sessions behind it. The other
            // setting matters on a cluster only, where it lets a transaction change several tables.
            try await connection.run("SET lock_timeout = '30s'; SET citus.multi_shard_modify_mode = 'sequential'")
        }
    }

    /// Creates or upgrades the history's table. A current one is not touched: waiting for its lock would block every
    /// server.
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

    private func readHistory(_ connection: ScriptConnection) async throws(MigrationError) -> MigrationHistory {
        try await asking { () async throws(PostgresError) in
            MigrationHistory(
                known: migrations, applied: try await connection.execute(MigrationStatements.ReadHistory()))
        }
    }

    /// Applies a migration once its locks are free.
    ///
    /// Sessions queue behind a waiting lock. So an attempt waits only briefly, and lets them proceed before the next
    /// one.
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
            // Longer than PostgreSQL takes to end a blocking vacuum (deadlock_timeout).
            try await connection.run("BEGIN; SET LOCAL lock_timeout = '1500ms'")
            // One by one: a cluster passes a statement's text to its nodes as received.
            for statement in ScriptText.statements(of: migration.sql) {
                try await connection.run(String(statement))
                guard connection.isInTransaction else { throw .configuration("") }
            }
            _ = try await connection.execute(MigrationStatements.Record(migration: migration))
            try await connection.run("COMMIT")
        } catch .configuration {
            throw .endedTransaction(version: migration.version, name: migration.name)
        } catch {
            // The transaction is rolled back, or ends with the connection, which closes next.
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

    /// Returns every known or applied migration, in order of version.
    public func status() async throws(MigrationError) -> [MigrationStatus] {
        try await history().status
    }

    /// Returns the faults of the schema history and, on a distributed database, of the tables' placement. Empty without
    /// faults.
    ///
    /// It also returns parts of the schema that are missing although all migrations were applied.
    /// - Parameter role: The role that needs the rights that the migrations grant to the server's role; nil for the
    ///   current role.
    public func verify(rightsOf role: String?) async throws(MigrationError) -> [MigrationFinding] {
        try await withConnection { connection throws(MigrationError) in
            let findings = try await encodingFindings(on: connection) + history(on: connection).findings
            // With pending or newer migrations, the parts may differ.
            let missing = findings.isEmpty ? try await missingParts(rightsOf: role, on: connection) : []
            return try await findings + unplaced(on: connection) + missing
        }
    }

    private func missingParts(
        rightsOf role: String?, on connection: ScriptConnection
    ) async throws(MigrationError) -> [MigrationFinding] {
        guard let parts else { return [] }
        let found = try await asking { () async throws(PostgresError) in
            // For the transaction only: behind a pooler, the session is shared.
            try await connection.run("BEGIN")
            try await connection.run(SessionSettings.query(isLocal: true).text)
            let found = try await connection.execute(FindSchemaParts(role: role))
            try await connection.run("COMMIT")
            return found
        }
        let missing = parts.missing(from: found)
        return missing.isEmpty ? [] : [.lacks(missing)]
    }

    /// Returns the faults that make these migrations incompatible with the database's schema.
    public func incompatibilities() async throws(MigrationError) -> [MigrationFinding] {
        try await withConnection { connection throws(MigrationError) in
            try await encodingFindings(on: connection) + history(on: connection).incompatibilities
        }
    }

    /// Returns a finding if the database's encoding cannot store every text.
    private func encodingFindings(on connection: ScriptConnection) async throws(MigrationError) -> [MigrationFinding] {
        let encoding = try await asking { () async throws(PostgresError) in
            try await connection.execute(FindEncoding()).first
        }
        guard let encoding, encoding != FindEncoding.needed else { return [] }
        return [.unsuitableEncoding(encoding)]
    }

    /// Rejects an incompatible schema: older than these migrations, too new for them, or of another program.
    /// - Throws: ``MigrationError/findings(_:)``, whose description contains the remedy.
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

    private func asking<Result>(
        _ body: () async throws(PostgresError) -> Result
    ) async throws(MigrationError) -> Result {
        do throws(PostgresError) {
            return try await body()
        } catch {
            throw .database(error)
        }
    }
}

/// The result of ``Migrator/up()`` or ``Migrator/finish()``.
public struct SchemaUpgrade: Sendable {
    /// The applied migrations.
    public let migrations: [Migration]
    /// The tables that it distributed, on a cluster.
    public let placed: [TablePlacement]

    /// True if there was nothing to do.
    public var isEmpty: Bool { migrations.isEmpty && placed.isEmpty }
}

/// The result of ``Migrator/distribute()``.
public struct Distribution: Sendable {
    /// The tables that it distributed.
    public let placed: [TablePlacement]
    /// The tables from an earlier, incomplete call whose rows it removed from the coordinator.
    public let cleanedUp: [TablePlacement]
}

extension Migrator {
    /// Distributes the database.
    ///
    /// It places every table that is not placed yet, with its rows, all or nothing. Then it removes the coordinator's
    /// earlier rows of them. It can be called again at any time, and continues after an incomplete call.
    /// - Throws: ``MigrationError/notACluster``, ``MigrationError/findings(_:)`` when migrations are missing,
    ///   ``MigrationError/placedOtherwise(table:found:expected:)``, or ``MigrationError/notCleanedUp(table:_:)``.
    public func distribute() async throws(MigrationError) -> Distribution {
        try await withConnection { connection throws(MigrationError) in
            try await lock(connection)
            let history = try await readHistory(connection)
            guard history.findings.isEmpty else { throw .findings(history.findings) }
            guard let tables = try await findTables(on: connection) else { throw .notACluster }
            let placed = try await place(tables.missing(of: placements), on: connection)
            let cleanedUp = try await cleanUp(placements, on: connection)
            return Distribution(
                placed: placed,
                cleanedUp: cleanedUp.filter { placement in !placed.contains { $0.table == placement.table } })
        }
    }

    /// Places tables of later migrations, if the database is distributed.
    private func placeNewTables(on connection: ScriptConnection) async throws(MigrationError) -> [TablePlacement] {
        guard let tables = try await findTables(on: connection), tables.isDistributed else { return [] }
        let placed = try await place(tables.missing(of: placements), on: connection)
        _ = try await cleanUp(placed, on: connection)
        return placed
    }

    /// Returns the remaining steps of ``distribute()`` on a distributed database.
    private func unplaced(on connection: ScriptConnection) async throws(MigrationError) -> [MigrationFinding] {
        guard let tables = try await findTables(on: connection), tables.isDistributed else { return [] }
        return try tables.missing(of: placements).map { .notPlaced(table: $0.table) }
            + tables.keptRows(of: placements).map { .notCleanedUp(table: $0.table) }
    }

    /// Returns nil if the database has no Citus.
    private func findTables(on connection: ScriptConnection) async throws(MigrationError) -> PlacedTables? {
        try await asking { () async throws(PostgresError) in
            guard try await connection.execute(PlacementStatements.HasCitus()) == [true] else { return nil }
            return PlacedTables(found: try await connection.execute(PlacementStatements.FindTables()))
        }
    }

    private func place(
        _ missing: [TablePlacement], on connection: ScriptConnection
    ) async throws(MigrationError) -> [TablePlacement] {
        do throws(PostgresError) {
            try await connection.run("BEGIN")
            for placement in missing { try await connection.run(placement.script) }
            try await connection.run("COMMIT")
        } catch {
            // The connection closes next, which ends the transaction.
            throw .notDistributed(error)
        }
        return missing
    }

    /// Removes the coordinator's earlier rows, in transactions of its own.
    ///
    /// A transaction that both places and empties tables would deadlock: it waits for readers, and writers wait for it.
    /// - Returns: The tables that had such rows.
    private func cleanUp(
        _ placements: [TablePlacement], on connection: ScriptConnection
    ) async throws(MigrationError) -> [TablePlacement] {
        let kept = try await findTables(on: connection)?.keptRows(of: placements) ?? []
        for placement in kept {
            do throws(PostgresError) {
                try await connection.run(placement.cleanUp)
            } catch {
                throw .notCleanedUp(table: placement.table, error)
            }
        }
        return kept
    }
}

/// The placement of the schema's tables in a database with Citus.
private struct PlacedTables {
    let found: [PlacementStatements.FindTables.Row]

    var isDistributed: Bool { found.contains { $0.placement != nil } }

    /// Returns the existing tables that are not placed yet.
    func missing(of placements: [TablePlacement]) throws(MigrationError) -> [TablePlacement] {
        var missing: [TablePlacement] = []
        for placement in placements {
            guard let current = found.first(where: { $0.table == placement.table }) else { continue }
            if let place = current.placement {
                guard place == placement.place else {
                    throw .placedOtherwise(table: placement.table, found: place, expected: placement.place)
                }
            } else {
                missing.append(placement)
            }
        }
        return missing
    }

    /// Returns the tables with rows on other nodes, of which this node also has earlier rows.
    func keptRows(of placements: [TablePlacement]) -> [TablePlacement] {
        placements.filter { placement in
            placement.kind != .onCoordinator
                && found.contains { $0.table == placement.table && $0.placement != nil && $0.keepsRows }
        }
    }
}
