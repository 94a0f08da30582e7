import CommandLineKit
import EventLoop
import HTTPCore
import Postgres
import SalternServer

/// Runs `body` with a migrator on a loop of its own.
/// - Parameter makesSchema: Whether it makes a schema where there is none: not where a restore is about to bring one back.
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

private let migrationHelp = """
    Connects with SALTERN_OWNER_DATABASE_URL, the role that owns the schema, or with SALTERN_DATABASE_URL.
    Either may be given as a file: SALTERN_OWNER_DATABASE_URL_FILE.
    """

struct MigrateUp: Command {
    static let words = ["migrate", "up"]
    static let summary = "bring the database's schema up to date"
    static let help = """
        \(migrationHelp)

        Each migration runs in a transaction of its own; several nodes may run this at once. Nodes of the release before
        go on meanwhile, if a migration allows that; what would take away what they need waits for saltern migrate finish.
        On a database that saltern migrate distribute has spread, new tables are spread too.
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
    static let summary = "take away what only the release before needed"
    static let help = """
        \(migrationHelp)

        To be run when every node has been upgraded: those of the release before go unready. The next release's
        migrate up does it otherwise.
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
    static let help = """
          --json           one object, for scripts

        \(migrationHelp)
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
    static let summary = "check that the schema is what this program's migrations make"
    static let help = """
        \(migrationHelp)

        Exit status 1 when a migration is missing, unknown or was changed after it had been applied, and when a column, an
        index, a check or a right of saltern_server that migrations have made is not there any more.
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
    static let summary = "spread the tables over the nodes of a cluster (Citus)"
    static let help = """
        \(migrationHelp)

        Empty or filled: the schema is brought up to date first, then rows move with their tables, all or nothing, and
        nobody writes meanwhile; at the end the coordinator removes what it has kept of them. Connect to the coordinator.
        Tables that are spread already are left alone, so this can be run again, whenever it was ended.
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
            console.print("removed what the coordinator had kept of \(placement.table)")
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
