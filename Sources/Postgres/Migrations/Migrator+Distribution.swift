/// What ``Migrator/up()`` or ``Migrator/finish()`` has done.
public struct SchemaUpgrade: Sendable {
    /// The migrations that it has applied.
    public let migrations: [Migration]
    /// The tables that it has placed, on a distributed database.
    public let placed: [TablePlacement]

    /// Whether there was nothing to do.
    public var isEmpty: Bool { migrations.isEmpty && placed.isEmpty }
}

/// What ``Migrator/distribute()`` has done.
public struct Distribution: Sendable {
    /// The tables that it has placed.
    public let placed: [TablePlacement]
    /// The tables of which it has removed what an earlier call, that did not come to its end, had left on the coordinator.
    public let cleanedUp: [TablePlacement]
}

extension Migrator {
    /// Turns the database into a distributed one: places every table that is not placed yet, with its rows, all or nothing;
    /// then removes what the coordinator has kept of them. Can be called again at any time, and goes on where an earlier call
    /// was ended.
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

    /// Places what later migrations have added, when the database is a distributed one.
    func placeNewTables(on connection: ScriptConnection) async throws(MigrationError) -> [TablePlacement] {
        guard let tables = try await findTables(on: connection), tables.isDistributed else { return [] }
        let placed = try await place(tables.missing(of: placements), on: connection)
        _ = try await cleanUp(placed, on: connection)
        return placed
    }

    /// What ``distribute()`` would still do on a distributed database.
    func unplaced(on connection: ScriptConnection) async throws(MigrationError) -> [MigrationFinding] {
        guard let tables = try await findTables(on: connection), tables.isDistributed else { return [] }
        return try tables.missing(of: placements).map { .notPlaced(table: $0.table) }
            + tables.keptRows(of: placements).map { .notCleanedUp(table: $0.table) }
    }

    /// Nil when the database has no Citus.
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
            // The connection closes next, and the transaction with it.
            throw .notDistributed(error)
        }
        return missing
    }

    /// In transactions of its own: one that has placed tables and then empties them would wait for who reads them and keep
    /// who writes them waiting, which is a deadlock.
    /// - Returns: Those of the tables of which something was there.
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

/// Where a database with Citus has the tables of the schema.
private struct PlacedTables {
    let found: [PlacementStatements.FindTables.Row]

    var isDistributed: Bool { found.contains { $0.placement != nil } }

    /// Those that are there and not placed yet.
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

    /// Those whose rows are elsewhere, and of which the node that is asked has kept the rows of before.
    func keptRows(of placements: [TablePlacement]) -> [TablePlacement] {
        placements.filter { placement in
            placement.kind != .onCoordinator
                && found.contains { $0.table == placement.table && $0.placement != nil && $0.keepsRows }
        }
    }
}
