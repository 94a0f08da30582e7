public import Postgres

/// What belongs to the database and is the same on every node: read once at start.
public struct Installation: Sendable {
    /// Decides which decoy an unknown userid is shown.
    let decoys: DecoyParameters
    /// Names whose failures are counted.
    let attempts: AttemptSubjects

    /// Reads the installation, and makes it the first time.
    ///
    /// - Throws: ``InstallationError/saltPrefixDiffers`` when the database was made for another salt prefix,
    ///   ``InstallationError/saltPrefixShowsNot(_:)`` when it is not what is read, or a `PostgresError`.
    public static func load(
        configuration: ServiceConfiguration, database: PostgresClient, clock: any WallClock
    ) async throws -> Installation {
        var row = try await database.execute(ReadInstallation()).first
        if row == nil {
            guard let fingerprint = try await database.execute(ReadDatabase()).first?.fingerprint else {
                throw DatabaseIsStandby()
            }
            try requireVisible(configuration.saltPrefix)
            let create = CreateInstallation(
                saltPrefix: configuration.saltPrefix, decoySecret: .random(),
                iterations: Int32(configuration.kdf.defaultIterations), fingerprint: fingerprint, now: clock.now)
            // Another node may be first: whose row it is does not matter, so it is read again.
            _ = try await database.execute(create)
            row = try await database.execute(ReadInstallation()).first
        }
        guard let row else { throw InstallationError.missing }
        try compare(configuration.saltPrefix, with: row)
        return Installation(
            decoys: DecoyParameters(secret: row.decoySecret), attempts: AttemptSubjects(secret: row.decoySecret))
    }

    /// Compares the salt prefix with the one that the database was made for, if it was made for any yet; changes nothing.
    /// - Throws: As ``load(configuration:database:clock:)``.
    public static func check(saltPrefix: String, database: PostgresClient) async throws {
        guard let row = try await database.execute(ReadInstallation()).first else {
            return try requireVisible(saltPrefix)
        }
        try compare(saltPrefix, with: row)
    }

    /// Byte for byte, as clients derive keys: to Swift two texts are equal that are written differently.
    private static func compare(_ saltPrefix: String, with row: ReadInstallation.Row) throws(InstallationError) {
        if row.saltPrefix.utf8.elementsEqual(saltPrefix.utf8) { return }
        try requireVisible(saltPrefix)
        throw .saltPrefixDiffers
    }

    /// A database that has such a prefix already keeps it: nobody could log in with another one.
    private static func requireVisible(_ saltPrefix: String) throws(InstallationError) {
        if let character = InvisibleCharacter(in: saltPrefix) { throw .saltPrefixShowsNot(character) }
    }
}

/// Why the service cannot use a database.
public enum InstallationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The row was removed while it was read.
    case missing
    /// Everybody's salt would be another.
    case saltPrefixDiffers
    /// There is more in it than can be seen.
    case saltPrefixShowsNot(InvisibleCharacter)

    public var description: String {
        switch self {
        case .missing: "the database has no installation row"
        case .saltPrefixDiffers:
            "SALTERN_SALT_PREFIX is not the one that the database was set up with, byte for byte; with another one nobody could "
                + "log in"
        case .saltPrefixShowsNot(let character):
            "the salt prefix has \(character), which nobody sees, and apps that are given what is seen could not log in: "
                + "type SALTERN_SALT_PREFIX anew"
        }
    }
}
