/// A row of a schema's history, wherever it was read.
public struct MigrationRecord: Sendable, Equatable {
    public let version: Int
    public let name: String
    /// SHA-256 of what was applied.
    public let checksum: [UInt8]
    /// What a program has to know at least; the migration itself when that was not noted.
    public let oldestProgram: Int

    public init(version: Int, name: String, checksum: [UInt8], oldestProgram: Int?) {
        self.version = version
        self.name = name
        self.checksum = checksum
        self.oldestProgram = oldestProgram ?? version
    }
}

extension Migrator {
    /// What would keep ``up()`` with these migrations from going on behind such a history. Asks no database.
    public static func obstacles(to migrations: [Migration], after records: [MigrationRecord]) -> [MigrationFinding] {
        let applied = records.sorted { $0.version < $1.version }.map {
            MigrationStatements.Applied(
                version: $0.version, name: $0.name, checksum: $0.checksum, appliedAt: .distantPast,
                oldestProgram: $0.oldestProgram)
        }
        return MigrationHistory(known: migrations, applied: applied).obstacles
    }
}
