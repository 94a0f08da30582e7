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
    func placeNewTables(on connection: ScriptConnection) async throws(MigrationError) -> [TablePlacement] {
        guard let tables = try await findTables(on: connection), tables.isDistributed else { return [] }
        let placed = try await place(tables.missing(of: placements), on: connection)
        _ = try await cleanUp(placed, on: connection)
        return placed
    }

    /// Returns the remaining steps of ``distribute()`` on a distributed database.
    func unplaced(on connection: ScriptConnection) async throws(MigrationError) -> [MigrationFinding] {
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
