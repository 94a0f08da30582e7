extension Migrator {
    /// Turns the database into a distributed one: places every table that is not placed yet, with its rows, all or nothing.
    /// Can be called again at any time.
    /// - Returns: The tables that this call placed.
    /// - Throws: ``MigrationError/notACluster``, ``MigrationError/findings(_:)`` when migrations are missing, or
    ///   ``MigrationError/placedOtherwise(table:found:expected:)``.
    public func distribute() async throws(MigrationError) -> [TablePlacement] {
        try await withConnection { connection throws(MigrationError) in
            try await lock(connection)
            let history = try await readHistory(connection)
            guard history.findings.isEmpty else { throw .findings(history.findings) }
            let isCluster = try await asking { () async throws(PostgresError) in
                try await connection.execute(PlacementStatements.HasCitus()) == [true]
            }
            guard isCluster else { throw .notACluster }
            return try await place(on: connection)
        }
    }

    /// Places what later migrations have added, when the database is a distributed one.
    func placeNewTables(on connection: ScriptConnection) async throws(MigrationError) {
        guard try await isDistributed(connection) else { return }
        _ = try await place(on: connection)
    }

    /// Whether tables of the schema are placed.
    func isDistributed(_ connection: ScriptConnection) async throws(MigrationError) -> Bool {
        try await asking { () async throws(PostgresError) in
            guard try await connection.execute(PlacementStatements.HasCitus()) == [true] else { return false }
            return try await connection.execute(PlacementStatements.FindTables()).contains { $0.placement != nil }
        }
    }

    private func place(on connection: ScriptConnection) async throws(MigrationError) -> [TablePlacement] {
        let found = try await asking { () async throws(PostgresError) in
            try await connection.execute(PlacementStatements.FindTables())
        }
        let tables = Dictionary(found.map { ($0.table, $0.placement) }) { first, _ in first }
        var missing: [TablePlacement] = []
        for placement in placements {
            guard let current = tables[placement.table] else { continue }
            if current == nil { missing.append(placement) }
            if let current, current != placement.place {
                throw .placedOtherwise(table: placement.table, found: current, expected: placement.place)
            }
        }
        do throws(PostgresError) {
            try await connection.run("BEGIN")
            for placement in missing { try await connection.run(placement.script) }
            try await connection.run("COMMIT")
            for script in missing.compactMap(\.cleanUp) { try await connection.run(script) }
        } catch {
            // The connection closes next, and the transaction with it.
            throw .notDistributed(error)
        }
        return missing
    }
}
