/// A row of a schema's history, from any source.
public struct MigrationRecord: Sendable, Equatable {
    public let version: Int
    public let name: String
    /// SHA-256 of the applied file.
    public let checksum: [UInt8]
    /// The oldest compatible program; by default the migration itself.
    public let oldestProgram: Int

    public init(version: Int, name: String, checksum: [UInt8], oldestProgram: Int?) {
        self.version = version
        self.name = name
        self.checksum = checksum
        self.oldestProgram = oldestProgram ?? version
    }
}

extension Migrator {
    /// Returns the faults that would stop ``up()`` with these migrations after such a history. Needs no database.
    public static func obstacles(to migrations: [Migration], after records: [MigrationRecord]) -> [MigrationFinding] {
        let applied = records.sorted { $0.version < $1.version }.map {
            MigrationStatements.Applied(
                version: $0.version, name: $0.name, checksum: $0.checksum, appliedAt: .distantPast,
                oldestProgram: $0.oldestProgram)
        }
        return MigrationHistory(known: migrations, applied: applied).obstacles
    }
}
