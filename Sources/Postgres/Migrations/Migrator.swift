public import EventLoop

/// Brings a database's schema to the state that the given migrations describe.
public struct Migrator: Sendable {
    /// Works with the owner's connection string, or with the server's for ``requireCurrent()``.
    public init(configuration: PostgresConfiguration, migrations: [Migration], loop: EventLoop) throws(MigrationError) {}

    /// Applies what is missing, each migration in a transaction of its own. Several nodes may call it at once.
    /// - Returns: the migrations that this call applied.
    @discardableResult
    public func up() async throws(MigrationError) -> [Migration] { [] }

    /// Every migration, known or applied, in order of version.
    public func status() async throws(MigrationError) -> [MigrationStatus] { [] }

    /// What is wrong with the database's schema history; empty when all is well.
    public func verify() async throws(MigrationError) -> [MigrationFinding] { [] }

    /// Refuses a schema that is older or newer than these migrations, or was made by other ones.
    public func requireCurrent() async throws(MigrationError) {}
}

/// One migration's state in a database.
public struct MigrationStatus: Sendable {
    public let version: Int
    public let name: String
    /// When it was applied; `nil` when it was not yet.
    public let appliedAt: Timestamp?
}

/// One thing that is wrong with a database's schema history.
public enum MigrationFinding: Sendable, Equatable {
    case notApplied(version: Int, name: String)
    case checksumChanged(version: Int, name: String)
    case nameChanged(version: Int, known: String, applied: String)
    case unknown(version: Int, name: String)
}

/// Why the migrator stopped.
public enum MigrationError: Error, Sendable {
    case invalidMigrations(String)
    case findings([MigrationFinding])
    case failed(version: Int, name: String, PostgresError)
    case database(PostgresError)
}
