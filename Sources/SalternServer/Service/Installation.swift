public import Postgres

/// The values of a database that are equal on all nodes, read once at the start.
public struct Installation: Sendable {
    /// Selects the decoy of an unknown userid.
    let decoys: DecoyParameters
    /// Derives the subjects of failure counters.
    let attempts: AttemptSubjects
    /// Names accounts for audiences. Absent on a standby that has none yet, and if no master key opens it.
    let pairwiseKey: PairwiseKey?

    /// Reads the installation, and creates it at the first start.
    ///
    /// - Throws: ``InstallationError/saltPrefixDiffers`` if the database has another salt prefix,
    ///   ``InstallationError/saltPrefixShowsNot(_:)`` if the prefix has an invisible character, ``DatabaseIsStandby``
    ///   for a first start on a standby, or a `PostgresError`.
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
            // Another node may create it first, so the row is read again.
            _ = try await database.execute(create)
            row = try await database.execute(ReadInstallation()).first
        }
        if let found = row, found.pairwiseKey == nil {
            row = try await createPairwiseKey(configuration.masterKey, database) ?? found
        }
        guard let row else { throw InstallationError.missing }
        try compare(configuration.saltPrefix, with: row)
        return Installation(
            decoys: DecoyParameters(secret: row.decoySecret), attempts: AttemptSubjects(secret: row.decoySecret),
            pairwiseKey: row.pairwiseKey.flatMap { try? PairwiseKey(sealed: $0, masterKey: configuration.masterKey) })
    }

    /// Generates the pairwise key of a database that has none.
    /// - Returns: The row with this key or the key of another node. Nil if the database is read-only or sealing fails.
    private static func createPairwiseKey(
        _ masterKey: MasterKey, _ database: PostgresClient
    ) async throws -> ReadInstallation.Row? {
        do throws(PostgresError) {
            let sealed: [UInt8]
            do { sealed = try PairwiseKey.random().sealed(by: masterKey) } catch { return nil }
            _ = try await database.execute(StorePairwiseKey(sealed: sealed))
            return try await database.execute(ReadInstallation()).first
        } catch {
            guard error.sqlState == .readOnlyTransaction else { throw error }
            return nil
        }
    }

    /// Compares the salt prefix with the database's, if that exists, and changes nothing.
    ///
    /// - Throws: The errors of ``load(configuration:database:clock:)``.
    public static func check(saltPrefix: String, database: PostgresClient) async throws {
        guard let row = try await database.execute(ReadInstallation()).first else {
            return try requireVisible(saltPrefix)
        }
        try compare(saltPrefix, with: row)
    }

    /// Compares bytes, as clients derive keys from them: Swift treats differently encoded texts as equal.
    private static func compare(_ saltPrefix: String, with row: ReadInstallation.Row) throws(InstallationError) {
        if row.saltPrefix.utf8.elementsEqual(saltPrefix.utf8) { return }
        try requireVisible(saltPrefix)
        throw .saltPrefixDiffers
    }

    /// Rejects an invisible character in a new prefix. An existing database keeps its prefix, because log-ins depend on
    /// it.
    private static func requireVisible(_ saltPrefix: String) throws(InstallationError) {
        if let character = InvisibleCharacter(in: saltPrefix) { throw .saltPrefixShowsNot(character) }
    }
}

/// Reasons for which the service cannot use a database.
public enum InstallationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The row does not exist.
    case missing
    /// The salt prefix would change all users' salts.
    case saltPrefixDiffers
    /// The salt prefix has an invisible character.
    case saltPrefixShowsNot(InvisibleCharacter)

    public var description: String {
        switch self {
        case .missing: "the database has no installation row"
        case .saltPrefixDiffers:
            "SALTERN_SALT_PREFIX differs from the salt prefix of the database; with another salt prefix no user can log in"
        case .saltPrefixShowsNot(let character):
            "the salt prefix contains the invisible character \(character), and apps without it could not log in: "
                + "enter SALTERN_SALT_PREFIX again"
        }
    }
}

/// A character that is invisible or resembles another one. Users who copy a prefix with it by sight derive other keys.
public struct InvisibleCharacter: Error, Sendable, Equatable, CustomStringConvertible {
    private let scalar: Unicode.Scalar
    /// The position, counted from 1.
    private let position: Int

    /// Finds the first one in a text.
    init?(in text: String) {
        for (index, scalar) in text.unicodeScalars.enumerated() where Self.isInvisible(scalar) {
            self.scalar = scalar
            position = index + 1
            return
        }
        return nil
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isDefaultIgnorableCodePoint { return true }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator: return true
        // BRAILLE PATTERN BLANK, which is no space.
        default: return scalar.value == 0x2800
        }
    }

    public var description: String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        let code = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        let name = scalar.properties.name ?? scalar.properties.nameAlias ?? "control"
        return "U+\(code) (\(name)) as character \(position)"
    }
}

/// Reads the installation's row.
struct ReadInstallation: Statement {
    struct Row: Sendable {
        let saltPrefix: String
        let decoySecret: DecoySecret
        /// Sealed by a master key.
        let pairwiseKey: [UInt8]?
    }

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT salt_prefix, decoy_secret, pairwise_key FROM saltern.installation WHERE singleton"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Creates the installation's row unless it exists.
struct CreateInstallation: Statement {
    let saltPrefix: String
    let decoySecret: DecoySecret
    /// The iterations of decoys until real accounts exist.
    let iterations: Int32
    /// The fingerprint of the database's present history.
    let fingerprint: DatabaseFingerprint
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.installation (salt_prefix, decoy_secret, decoy_iterations, decoys_drawn_at, created_at, fingerprint)
        VALUES (\(\.saltPrefix), \(\.decoySecret), array_fill(\(\.iterations)::integer, ARRAY[256]), '-infinity',
            \(\.now), \(\.fingerprint))
        ON CONFLICT (singleton) DO NOTHING
        """
}

/// Stores the installation's pairwise key, if there is none.
struct StorePairwiseKey: Statement {
    let sealed: [UInt8]

    static let sql: SQL<Self> = """
        UPDATE saltern.installation SET pairwise_key = \(\.sealed) WHERE singleton AND pairwise_key IS NULL
        """
}

/// Reads the number of the latest migration and the compatibility of newer ones.
struct ReadSchemaVersion: Statement {
    static let isReadOnly = true
    /// A schema of an earlier release has no column `oldest_program` until the next `saltern migrate up`.
    static let sql: SQL<Self> = """
        SELECT coalesce(max(version), 0),
            coalesce(max(coalesce((to_jsonb(history) ->> 'oldest_program')::integer, version))
                FILTER (WHERE version > \(\.known)), 0)
        FROM saltern.schema_migrations AS history
        """

    private var known: Int32 { Int32(Schema.known) }

    /// Reads the compatibility of the schema with this program.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Schema.Fit {
        Schema.fit(version: Int(try row.next(Int32.self)), oldestProgram: Int(try row.next(Int32.self)))
    }
}

/// The statements of the installation and its database.
extension StatementList {
    static var service: [any Statement.Type] {
        [
            ReadInstallation.self, CreateInstallation.self, ReadSchemaVersion.self, ReadDatabaseState.self,
            ReadReplicationState.self, ReadEveryNode.self,
        ]
    }
}
