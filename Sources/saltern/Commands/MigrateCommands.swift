import CommandLineKit
import EventLoop
import HTTPCore
import Postgres
import SalternServer

/// Runs `body` with a migrator on a loop of its own.
/// - Parameter makesSchema: True if `body` creates a missing schema. Rejected while a restore is about to do so.
private func withMigrator<Result: Sendable>(
    _ console: Console, makesSchema: Bool = false,
    _ body: @escaping @Sendable (Migrator) async throws(MigrationError) -> Result
) async throws -> Result {
    var settings = Settings(console.environment)
    let database = settings.ownerDatabase()
    try settings.finish()
    guard let database else { throw CommandFailure("no database is configured") }
    if makesSchema {
        try await RestoreMark.requireNothingAwaited(console)
    } else {
        try await requireOneDatabase(console)
    }
    let loop = try EventLoop(name: "migrate")
    try loop.start()
    defer { loop.stop() }
    do {
        return try await loop.run {
            try await body(
                Migrator(
                    configuration: database, migrations: Schema.migrations, placements: Schema.placements,
                    parts: Schema.parts, loop: loop))
        }
    } catch let error as MigrationError {
        throw await DatabaseCommand.failure(error, console)
    }
}

private func requireOneDatabase(_ console: Console) async throws {
    try await DatabaseCommand.asOwner(console, needsSchema: false) { _ in }
}

struct MigrateUp: Command {
    static let words = ["migrate", "up"]
    static let summary = "update the database's schema"
    static let usage = [""]
    static let example = "saltern migrate up"
    static let help = """
        Each migration runs in its own transaction. Several nodes can run this at once.
        Nodes of the previous release continue to work where a migration allows it.
        Changes that would stop them wait for `saltern migrate finish`. New tables are
        distributed if `saltern migrate distribute` has distributed the database.

        \(DatabaseCommand.ownerHelp)
        """

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {
        let upgrade = try await withMigrator(console, makesSchema: true) { migrator throws(MigrationError) in
            try await migrator.up()
        }
        console.print(upgrade)
        if upgrade.isEmpty { console.print("nothing to do") }
    }
}

struct MigrateFinish: Command {
    static let words = ["migrate", "finish"]
    static let summary = "remove what only the previous release needs"
    static let usage = [""]
    static let example = "saltern migrate finish"
    static let help = """
        Run it when every node has been upgraded: nodes of the previous release become
        unready. Otherwise the `migrate up` of the next release does it.

        \(DatabaseCommand.ownerHelp)
        """

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {
        let upgrade = try await withMigrator(console) { migrator throws(MigrationError) in try await migrator.finish() }
        console.print(upgrade)
        if upgrade.isEmpty { console.print("nothing to do") }
    }
}

struct MigrateStatus: Command {
    static let words = ["migrate", "status"]
    static let summary = "list the migrations and when each was applied"
    static let example = "saltern migrate status --json"
    static let help = """
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let all = try await withMigrator(console) { migrator throws(MigrationError) in try await migrator.status() }
        guard !asJSON else {
            return console.printJSON { writer in
                writer.array("migrations") { writer in
                    for status in all {
                        writer.object { writer in
                            writer.member("file", Migration.fileName(status.version, status.name))
                            writer.member("known", status.isKnown)
                            if let appliedAt = status.appliedAt { writer.member("appliedAt", appliedAt.utc) }
                        }
                    }
                }
            }
        }
        for status in all {
            let applied = status.appliedAt.map {
                "applied \(UTCTimestamp(microsecondsSinceEpoch: $0.unixMicroseconds))"
            }
            console.print("\(Migration.fileName(status.version, status.name))  \(applied ?? "not applied")")
        }
    }
}

struct MigrateVerify: Command {
    static let words = ["migrate", "verify"]
    static let summary = "check the schema against this program's migrations"
    static let usage = [""]
    static let example = "saltern migrate verify"
    static let help = """
        Exit status 1 when a migration is missing, unknown or was changed after it was
        applied, or when a column, index, constraint or right of a migration is missing.

        \(DatabaseCommand.ownerHelp)
        """

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {
        let findings = try await withMigrator(console) { migrator throws(MigrationError) in
            try await migrator.verify(rightsOf: Schema.serverRole)
        }
        if !findings.isEmpty { throw CommandFailure(findings.map { "\($0)" }) }
        console.print("the schema is current")
    }
}

struct MigrateDistribute: Command {
    static let words = ["migrate", "distribute"]
    static let summary = "distribute the tables over a cluster (Citus)"
    static let usage = [""]
    static let example = "saltern migrate distribute"
    static let help = """
        Connect to the coordinator. Updates the schema first, then moves the rows with
        their tables in one transaction. Writes wait meanwhile. At the end the
        coordinator removes its own copies. Distributed tables are skipped, so the
        command can be run again after an interruption.

        \(DatabaseCommand.ownerHelp)
        """

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws {
        let (upgrade, distribution) = try await withMigrator(console, makesSchema: true) {
            migrator throws(MigrationError) in
            (try await migrator.up(), try await migrator.distribute())
        }
        console.print(upgrade)
        console.print(distribution.placed)
        for placement in distribution.cleanedUp {
            console.print("removed the coordinator's earlier rows of \(placement.table)")
        }
        if upgrade.isEmpty && distribution.placed.isEmpty && distribution.cleanedUp.isEmpty {
            console.print("nothing to do")
        }
    }
}

extension Console {
    fileprivate func print(_ upgrade: SchemaUpgrade) {
        for migration in upgrade.migrations { print("applied \(migration.fileName)") }
        print(upgrade.placed)
    }

    fileprivate func print(_ placements: [TablePlacement]) {
        for placement in placements { print("\(placement.table) is \(placement.place)") }
    }
}

extension Migration {
    /// The name of the file, as in `0001_accounts_sessions_items.sql`.
    fileprivate var fileName: String { Self.fileName(version, name) }

    fileprivate static func fileName(_ version: Int, _ name: String) -> String {
        let digits = String(version)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "_" + name + ".sql"
    }
}
