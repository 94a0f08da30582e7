public import Postgres

/// What belongs to the database and is the same on every node: read once at start.
public struct Installation: Sendable {
    /// Decides which decoy an unknown userid is shown.
    let decoys: DecoyParameters
    /// Names whose failures are counted.
    let attempts: AttemptSubjects

    /// Reads the installation, and makes it the first time.
    ///
    /// - Throws: ``InstallationError/saltPrefixDiffers`` when the database was made for another salt prefix, or a
    ///   `PostgresError`.
    public static func load(
        configuration: ServiceConfiguration, database: PostgresClient, clock: any WallClock
    ) async throws -> Installation {
        var row = try await database.execute(ReadInstallation()).first
        if row == nil {
            guard let fingerprint = try await database.execute(ReadDatabase()).first?.fingerprint else {
                throw DatabaseIsStandby()
            }
            let create = CreateInstallation(
                saltPrefix: configuration.saltPrefix, decoySecret: .random(),
                iterations: Int32(configuration.kdf.defaultIterations), fingerprint: fingerprint, now: clock.now)
            // Another node may be first: whose row it is does not matter, so it is read again.
            _ = try await database.execute(create)
            row = try await database.execute(ReadInstallation()).first
        }
        guard let row else { throw InstallationError.missing }
        guard row.saltPrefix == configuration.saltPrefix else { throw InstallationError.saltPrefixDiffers }
        return Installation(
            decoys: DecoyParameters(secret: row.decoySecret), attempts: AttemptSubjects(secret: row.decoySecret))
    }

    /// Compares the salt prefix with the one that the database was made for, if it was made for any yet; changes nothing.
    /// - Throws: ``InstallationError/saltPrefixDiffers``, or a `PostgresError`.
    public static func check(saltPrefix: String, database: PostgresClient) async throws {
        guard let row = try await database.execute(ReadInstallation()).first else { return }
        guard row.saltPrefix == saltPrefix else { throw InstallationError.saltPrefixDiffers }
    }
}

/// Why the service cannot use a database.
public enum InstallationError: Error, Sendable, CustomStringConvertible {
    /// The row was removed while it was read.
    case missing
    /// Everybody's salt would be another.
    case saltPrefixDiffers

    public var description: String {
        switch self {
        case .missing: "the database has no installation row"
        case .saltPrefixDiffers:
            "the database was set up with another salt prefix; with a new one nobody could log in"
        }
    }
}
