/// A fault of a database's schema history.
public enum MigrationFinding: Sendable, Equatable {
    /// The database is older than the program.
    case notApplied(version: Int, name: String)
    /// The database is newer than the program, and incompatible with it.
    case unknown(version: Int, name: String)
    /// The database is newer than the program, and compatible with it.
    case ahead(version: Int, name: String)
    /// Objects that the previous release needed are still there.
    case notFinished(version: Int, name: String)
    /// The file was changed after it was applied.
    case checksumChanged(version: Int, name: String)
    /// Another migration was applied under this number.
    case nameChanged(version: Int, known: String, applied: String)
    /// A migration is missing between two that were applied.
    case gap(version: Int, name: String)
    /// The database is distributed, and this table is not.
    case notPlaced(table: String)
    /// The table is distributed, and the coordinator also has its earlier rows.
    case notCleanedUp(table: String)
    /// Objects or rights from the migrations are missing.
    case lacks([String])
    /// The database has this encoding instead of UTF8, and cannot store clients' text.
    case unsuitableEncoding(String)
}

extension MigrationFinding: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notApplied(let version, let name):
            "migration \(version) (\(name)) is not applied: run `saltern migrate up`"
        case .unknown(let version, let name):
            "migration \(version) (\(name)) is unknown to this program: install a newer one"
        case .ahead(let version, let name):
            "migration \(version) (\(name)) is unknown to this program, which works with it: install the newer one"
        case .notFinished(let version, let name):
            "migration \(version) (\(name)) is not applied: run `saltern migrate finish` when every node is upgraded"
        case .checksumChanged(let version, let name):
            "migration \(version) (\(name)) was changed after it had been applied: restore the file"
        case .nameChanged(let version, let known, let applied):
            "migration \(version) is \(known) here, but \(applied) was applied: the database belongs to another program"
        case .gap(let version, let name):
            "migration \(version) (\(name)) is not applied, but later ones are: the history was tampered with"
        case .notPlaced(let table):
            "\(table) is on one node only: run `saltern migrate distribute`"
        case .notCleanedUp(let table):
            "the coordinator still has earlier rows of the distributed table \(table): run `saltern migrate distribute`"
        case .unsuitableEncoding(let encoding):
            "the database's encoding is \(encoding) and must be UTF8: create another database (CREATE DATABASE … ENCODING "
                + "'UTF8' TEMPLATE template0), back this one up with `saltern backup`, and restore it there"
        case .lacks(let parts):
            "the schema differs from its migrations, because it was changed in another way; create again: "
                + parts.prefix(Self.namedParts).joined(separator: "; ")
                + (parts.count > Self.namedParts ? "; and \(parts.count - Self.namedParts) more" : "")
        }
    }

    private static let namedParts = 8
}

/// One migration's state in a database.
public struct MigrationStatus: Sendable {
    public let version: Int
    public let name: String
    /// The time at which it was applied; `nil` if it is missing.
    public let appliedAt: Timestamp?
    /// True if this program has it.
    public let isKnown: Bool
}

/// The reason why the migrator stopped.
public enum MigrationError: Error, Sendable {
    /// The program's own list is invalid.
    case invalidMigrations(String)
    /// The history has faults. Nothing was changed.
    case findings([MigrationFinding])
    /// This migration failed and changed nothing. Those before it are applied.
    case failed(version: Int, name: String, PostgresError)
    /// The migration ended its own transaction. Its earlier statements may have taken effect.
    case endedTransaction(version: Int, name: String)
    /// Another session locks the history's table, which needs another column first. Nothing was changed.
    case historyIsHeld
    /// The tables cannot be distributed, because the database has no Citus.
    case notACluster
    /// A table is distributed in another way than this program needs.
    case placedOtherwise(table: String, found: String, expected: String)
    /// The tables could not be distributed. Nothing was changed.
    case notDistributed(PostgresError)
    /// The tables are distributed. The coordinator's earlier rows of this one could not be removed.
    case notCleanedUp(table: String, PostgresError)
    /// A query of the database failed.
    case database(PostgresError)
}

extension MigrationError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .invalidMigrations(let message): message
        case .findings(let findings): findings.map(\.description).joined(separator: "\n")
        case .failed(let version, let name, .server(let error)):
            // A migration's author needs the message, and it contains no user's row.
            "migration \(version) (\(name)) failed: \(error.unredactedMessage) (\(error))"
        case .failed(let version, let name, let error): "migration \(version) (\(name)) failed: \(error)"
        case .endedTransaction(let version, let name):
            "migration \(version) (\(name)) must not contain COMMIT or ROLLBACK"
        case .historyIsHeld:
            "another session, probably a backup, locks the table saltern.schema_migrations: try again later; "
                + "nothing was changed"
        case .notACluster:
            "the database is not a cluster: as a superuser, CREATE EXTENSION citus on every node, and add the workers"
        case .placedOtherwise(let table, let found, let expected):
            "the rows of \(table) are \(found) and must be \(expected): the database belongs to another program"
        case .notDistributed(.server(let error)):
            // The message contains names of tables and columns, and no row.
            "the tables were not distributed: \(error.unredactedMessage) (\(error))"
        case .notDistributed(let error): "the tables were not distributed: \(error)"
        case .notCleanedUp(let table, let error):
            "the tables are distributed, and the coordinator still has unused earlier rows of \(table): "
                + "run `saltern migrate distribute` again (\(error))"
        case .database(let error): error.description
        }
    }
}
