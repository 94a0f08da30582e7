import EventLoop
import SalternTesting
import Testing

@testable import Postgres

@Suite(.timeLimit(.minutes(60))) struct MigratorTests {
    private static let notes = Migration(
        version: 1, name: "notes",
        sql: """
            -- Several statements, and a semicolon in a string.
            CREATE TABLE saltern.notes (id integer PRIMARY KEY, body text DEFAULT ';');
            GRANT USAGE ON SCHEMA saltern TO saltern_server;
            GRANT SELECT, INSERT, UPDATE, DELETE ON saltern.notes TO saltern_server;
            """)
    private static let more = Migration(
        version: 2, name: "more", sql: "INSERT INTO saltern.notes (id) VALUES (1), (2); SELECT pg_sleep(0.05)")

    private struct NoteCount: Statement {
        typealias Row = Int64
        static let sql: SQL<Self> = "SELECT count(*) FROM saltern.notes"
    }

    private struct SleeperCount: Statement {
        typealias Row = Int64
        static let sql: SQL<Self> = """
            SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'
            """
    }

    /// Runs `body` with a database without migrations and a loop for migrators.
    private func withEmptyDatabase<Result: Sendable>(
        _ body: (TemporaryDatabase, EventLoop) async throws -> Result
    ) async throws -> Result {
        let loop = try EventLoop(name: "migrator")
        try loop.start()
        defer { loop.stop() }
        return try await TemporaryDatabase.with(migrations: []) { try await body($0, loop) }
    }

    private func migrator(_ url: String, _ migrations: [Migration], _ loop: EventLoop) throws -> Migrator {
        try Migrator(configuration: .patient(url), migrations: migrations, loop: loop)
    }

    @Test func `migrations are applied once, in order, and are then current`() async throws {
        try await withEmptyDatabase { database, loop in
            let first = try migrator(database.ownerURL, [Self.notes], loop)
            #expect(try await first.verify(rightsOf: nil) == [.notApplied(version: 1, name: "notes")])
            #expect(try await first.up().migrations.map(\.version) == [1])
            #expect(try await first.up().isEmpty)
            let both = try migrator(database.ownerURL, [Self.notes, Self.more], loop)
            #expect(try await both.status().map { $0.appliedAt != nil } == [true, false])
            #expect(try await both.up().migrations.map(\.version) == [2])
            try await both.requireCompatible()
            #expect(try await both.status().map { $0.appliedAt != nil } == [true, true])
            let count = try await withClient(url: database.ownerURL) { try await $0.execute(NoteCount()) }
            #expect(count == [2])
        }
    }

    @Test func `a server that takes connections and says nothing is passed by`() async throws {
        try await undisturbed {
            try await withEmptyDatabase { database, loop in
                _ = try await migrator(database.ownerURL, [Self.notes], loop).up()
                let silent = try SilentServer()
                defer { silent.stop() }
                // libpq tries the next server only when the first one has refused.
                let hosts = "@" + silent.directory.replacing("/", with: "%2F") + ","
                var configuration = try PostgresConfiguration.patient(
                    database.ownerURL.replacing("@", with: hosts, maxReplacements: 1))
                configuration.connectTimeout = .seconds(5)
                let migrator = try Migrator(configuration: configuration, migrations: [Self.notes], loop: loop)
                try await migrator.requireCompatible()
            }
        }
    }

    @Test func `migrators that start at once apply each migration once`() async throws {
        try await withEmptyDatabase { database, loop in
            let migrator = try migrator(database.ownerURL, [Self.notes, Self.more], loop)
            let applied = try await withThrowingTaskGroup(of: [Int].self) { group in
                for _ in 0..<4 { group.addTask { try await migrator.up().migrations.map(\.version) } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(applied == [1, 2])
        }
    }

    @Test func `who is cancelled stops, and leaves nothing behind at the server`() async throws {
        try await withEmptyDatabase { database, loop in
            let slow = Migration(
                version: 2, name: "slow", sql: "INSERT INTO saltern.notes VALUES (1); SELECT pg_sleep(600)")
            let migrator = try migrator(database.ownerURL, [Self.notes, slow], loop)
            let migration = Task { try await migrator.up() }
            try await withClient(url: database.ownerURL) { client in
                while try await client.execute(SleeperCount()) == [0] { try await Task.sleep(for: .milliseconds(10)) }
                migration.cancel()
                await #expect(throws: MigrationError.self) { try await migration.value }
                while try await client.execute(SleeperCount()) != [0] { try await Task.sleep(for: .milliseconds(10)) }
                #expect(try await client.execute(NoteCount()) == [0])
            }
            #expect(try await migrator.verify(rightsOf: nil) == [.notApplied(version: 2, name: "slow")])
        }
    }

    @Test func `a migration that fails changes nothing, and those before it stay`() async throws {
        try await withEmptyDatabase { database, loop in
            let broken = Migration(
                version: 2, name: "broken", sql: "INSERT INTO saltern.notes VALUES (1); SELECT 1 / 0")
            let migrator = try migrator(database.ownerURL, [Self.notes, broken], loop)
            let error = await #expect(throws: MigrationError.self) { try await migrator.up() }
            guard case .failed(version: 2, name: "broken", let reason) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(reason.sqlState == .divisionByZero)
            #expect(try await migrator.verify(rightsOf: nil) == [.notApplied(version: 2, name: "broken")])
            let count = try await withClient(url: database.ownerURL) { try await $0.execute(NoteCount()) }
            #expect(count == [0])
        }
    }

    private struct ReadMigrationCount: Statement {
        typealias Row = Int64
        static let sql: SQL<Self> = "SELECT count(*) FROM saltern.schema_migrations"
    }

    /// Reads the history in a transaction that stays open, as a backup does, while `body` runs.
    private func withReader<Result: Sendable>(
        _ database: TemporaryDatabase, _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withClient(url: database.ownerURL) { client in
            try await client.withTransaction { transaction in
                _ = try await transaction.execute(ReadMigrationCount())
                return try await body()
            }
        }
    }

    @Test func `somebody who reads the history keeps no migration waiting`() async throws {
        try await withEmptyDatabase { database, loop in
            try await migrator(database.ownerURL, [Self.notes], loop).up()
            let both = try migrator(database.ownerURL, [Self.notes, Self.more], loop)
            let applied = try await withReader(database) { try await both.up().migrations.map(\.version) }
            #expect(applied == [2])
        }
    }

    @Test func `a history that has to be widened waits for who reads it, and lets others read meanwhile`() async throws
    {
        try await undisturbed {
            try await withEmptyDatabase { database, loop in
                try await migrator(database.ownerURL, [Self.notes], loop).up()
                try await PostgresScript.run(
                    ["ALTER TABLE saltern.schema_migrations DROP COLUMN oldest_program"],
                    configuration: .patient(database.ownerURL), loop: loop)
                var migrator = try migrator(database.ownerURL, [Self.notes, Self.more], loop)
                migrator.patience = .seconds(20)
                try await withReader(database) { [migrator] in
                    let migration = Task { try await migrator.up() }
                    // Each stands behind the migrator for as long as that waits in the queue, at worst: a moment, and not until it
                    // gives up.
                    for _ in 0..<10 {
                        let started = ContinuousClock.now
                        #expect(try await migrator.status().count == 2)
                        #expect(ContinuousClock.now - started < .seconds(10))
                        try await Task.sleep(for: .milliseconds(50))
                    }
                    let error = await #expect(throws: MigrationError.self) { try await migration.value }
                    guard case .historyIsHeld = error else {
                        Issue.record("\(String(describing: error))")
                        return
                    }
                }
                #expect(try await migrator.up().migrations.map(\.version) == [2])
            }
        }
    }

    private struct WaiterCount: Statement {
        typealias Row = Int64
        static let sql: SQL<Self> = """
            SELECT count(*) FROM pg_locks WHERE relation = 'saltern.notes'::regclass AND NOT granted
            """
    }

    @Test func `a migration that somebody keeps waiting lets others pass, and is applied in the end`() async throws {
        try await withEmptyDatabase { database, loop in
            try await migrator(database.ownerURL, [Self.notes], loop).up()
            let wider = Migration(version: 2, name: "wider", sql: "ALTER TABLE saltern.notes ADD COLUMN title text")
            let migrator = try migrator(database.ownerURL, [Self.notes, wider], loop)
            let migration = try await withClient(url: database.ownerURL) { client in
                try await client.withTransaction { transaction in
                    _ = try await transaction.execute(NoteCount())
                    let migration = Task { try await migrator.up() }
                    try await withClient(url: database.ownerURL) { other in
                        try await eventually { try await other.execute(WaiterCount()) == [1] }
                        // For as long as the transaction is open nothing else would end the wait before the time-out does.
                        #expect(try await other.execute(NoteCount()) == [0])
                    }
                    return migration
                }
            }
            #expect(try await migration.value.migrations.map(\.version) == [2])
        }
    }

    @Test func `a migration that gets no lock in time changes nothing`() async throws {
        try await withEmptyDatabase { database, loop in
            try await migrator(database.ownerURL, [Self.notes], loop).up()
            let wider = Migration(
                version: 2, name: "wider",
                sql: "CREATE TABLE saltern.more (); ALTER TABLE saltern.notes ADD COLUMN title text")
            var migrator = try migrator(database.ownerURL, [Self.notes, wider], loop)
            migrator.patience = .seconds(1)
            try await withClient(url: database.ownerURL) { [migrator] client in
                try await client.withTransaction { transaction in
                    _ = try await transaction.execute(NoteCount())
                    let error = await #expect(throws: MigrationError.self) { try await migrator.up() }
                    guard case .failed(version: 2, name: "wider", let reason) = error else {
                        Issue.record("\(String(describing: error))")
                        return
                    }
                    #expect(reason.sqlState == .lockNotAvailable)
                }
            }
            #expect(try await migrator.up().migrations.map(\.version) == [2])
        }
    }

    @Test func `a migration must not end its transaction`() async throws {
        try await withEmptyDatabase { database, loop in
            let sly = Migration(
                version: 1, name: "sly", sql: "CREATE TABLE saltern.a (); COMMIT; CREATE TABLE saltern.b ()")
            let error = await #expect(throws: MigrationError.self) {
                try await migrator(database.ownerURL, [sly], loop).up()
            }
            guard case .endedTransaction = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func `a changed, renamed, unknown or missing migration is found, and refused by up`() async throws {
        try await withEmptyDatabase { database, loop in
            try await migrator(database.ownerURL, [Self.notes, Self.more], loop).up()
            let changed = Migration(version: 1, name: "notes", sql: Self.notes.sql + " ")
            let renamed = Migration(version: 1, name: "others", sql: Self.notes.sql)
            for (migrations, finding) in [
                ([changed, Self.more], .checksumChanged(version: 1, name: "notes")),
                ([renamed, Self.more], .nameChanged(version: 1, known: "others", applied: "notes")),
                ([Self.notes], .unknown(version: 2, name: "more")),
            ] as [([Migration], MigrationFinding)] {
                let migrator = try migrator(database.serverURL, migrations, loop)
                #expect(try await migrator.verify(rightsOf: nil) == [finding])
                await #expect(throws: MigrationError.self) { try await migrator.requireCompatible() }
                let error = await #expect(throws: MigrationError.self) {
                    try await self.migrator(database.ownerURL, migrations, loop).up()
                }
                guard case .findings([finding]) = error else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
            try await PostgresScript.run(
                ["DELETE FROM saltern.schema_migrations WHERE version = 1"],
                configuration: .patient(database.ownerURL), loop: loop)
            let migrator = try migrator(database.ownerURL, [Self.notes, Self.more], loop)
            #expect(try await migrator.verify(rightsOf: nil) == [.gap(version: 1, name: "notes")])
            await #expect(throws: MigrationError.self) { try await migrator.up() }
        }
    }

    @Test func `the server's role is refused an older schema and says what to do`() async throws {
        try await TemporaryDatabase.with(migrations: [Self.notes]) { database in
            let loop = try EventLoop(name: "migrator")
            try loop.start()
            defer { loop.stop() }
            try await migrator(database.serverURL, [Self.notes], loop).requireCompatible()
            let error = await #expect(throws: MigrationError.self) {
                try await migrator(database.serverURL, [Self.notes, Self.more], loop).requireCompatible()
            }
            #expect("\(try #require(error))".contains("saltern migrate up"))
        }
    }

    @Test func `a release works with the schema of the next until that is finished`() async throws {
        let widened = Migration(
            version: 2, name: "widened",
            sql: """
                -- A column that the release before does not know.
                -- compatible with: 1

                ALTER TABLE saltern.notes ADD COLUMN title text
                """)
        let narrowed = Migration(
            version: 3, name: "narrowed",
            sql: """
                -- phase: finish
                ALTER TABLE saltern.notes DROP COLUMN body
                """)
        #expect(widened.oldestProgram == 1 && !widened.isFinishing)
        #expect(narrowed.oldestProgram == 3 && narrowed.isFinishing)
        try await withEmptyDatabase { database, loop in
            let old = try migrator(database.ownerURL, [Self.notes], loop)
            let new = try migrator(database.ownerURL, [Self.notes, widened, narrowed], loop)
            try await old.up()
            await #expect(throws: MigrationError.self) { try await new.requireCompatible() }
            #expect(try await new.up().migrations.map(\.version) == [2])
            for migrator in [old, new] { try await migrator.requireCompatible() }
            #expect(try await old.verify(rightsOf: nil) == [.ahead(version: 2, name: "widened")])
            #expect(try await new.verify(rightsOf: nil) == [.notFinished(version: 3, name: "narrowed")])
            await #expect(throws: MigrationError.self) { try await old.up() }
            #expect(try await new.up().isEmpty)
            #expect(try await new.finish().migrations.map(\.version) == [3])
            #expect(try await new.verify(rightsOf: nil).isEmpty)
            await #expect(throws: MigrationError.self) { try await old.requireCompatible() }
        }
    }

    @Test func `what a release has not finished, the next one's up does`() async throws {
        let narrowed = Migration(
            version: 2, name: "narrowed", sql: "-- phase: finish\nALTER TABLE saltern.notes DROP COLUMN body")
        let next = Migration(version: 3, name: "next", sql: "ALTER TABLE saltern.notes ADD COLUMN title text")
        try await withEmptyDatabase { database, loop in
            let earlier = try migrator(database.ownerURL, [Self.notes, narrowed], loop)
            #expect(try await earlier.up().migrations.map(\.version) == [1])
            let later = try migrator(database.ownerURL, [Self.notes, narrowed, next], loop)
            #expect(try await later.up().migrations.map(\.version) == [2, 3])
            #expect(try await later.finish().isEmpty)
        }
    }

    @Test func `versions have to be 1, 2, 3 and so on`() throws {
        let loop = try EventLoop(name: "unused")
        let configuration = try PostgresConfiguration("postgresql:///x")
        #expect(throws: MigrationError.self) {
            try Migrator(configuration: configuration, migrations: [Self.more], loop: loop)
        }
        #expect(throws: MigrationError.self) {
            try Migrator(configuration: configuration, migrations: [Self.notes, Self.notes], loop: loop)
        }
    }

    @Test func `the server's role reads and writes rows and can do nothing else`() async throws {
        try await TemporaryDatabase.with(migrations: [Self.notes]) { database in
            let loop = try EventLoop(name: "server role")
            try loop.start()
            defer { loop.stop() }
            let configuration = try PostgresConfiguration.patient(database.serverURL)
            try await PostgresScript.run(
                [
                    "INSERT INTO saltern.notes VALUES (1); UPDATE saltern.notes SET body = ''; TABLE saltern.notes;"
                        + "DELETE FROM saltern.notes"
                ], configuration: configuration, loop: loop)
            for forbidden in [
                "CREATE TABLE saltern.other ()", "ALTER TABLE saltern.notes ADD x integer", "DROP TABLE saltern.notes",
                "TRUNCATE saltern.notes", "CREATE TABLE public.other ()", "CREATE SCHEMA other",
                "INSERT INTO saltern.schema_migrations VALUES (9, '', ''::bytea)",
                "DELETE FROM saltern.schema_migrations",
            ] {
                let error = await #expect(throws: PostgresError.self, "\(forbidden)") {
                    try await PostgresScript.run([forbidden], configuration: configuration, loop: loop)
                }
                #expect(error?.sqlState == .insufficientPrivilege, "\(forbidden)")
            }
        }
    }

    @Test func `temporary databases of the same migrations are apart from each other`() async throws {
        let counts = try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    try await TemporaryDatabase.with(migrations: [Self.notes, Self.more]) { database in
                        try await withClient(url: database.serverURL) { client in
                            struct Add: Statement {
                                typealias Row = Void
                                static let sql: SQL<Self> = "INSERT INTO saltern.notes VALUES (9)"
                            }
                            _ = try await client.execute(Add())
                            return try await client.execute(NoteCount())[0]
                        }
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(counts == [3, 3, 3])
    }
}
