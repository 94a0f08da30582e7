import CommandLineKit
import EventLoop
import Foundation
import Postgres
import SalternServer
import SalternTesting
import Testing

@testable import saltern

/// What keeps restores apart, and servers away from what they leave.
@Suite struct RestoreMarkTests {
    private struct Ground {
        let console: Console
        let configuration: PostgresConfiguration
        let loop: EventLoop

        func run(_ sql: String) async throws {
            try await PostgresScript.run([sql], configuration: configuration, loop: loop)
        }

        /// Fails unless there is a mark, or unless there is none.
        func expectMark(_ isThere: Bool) async throws {
            try await run(
                "DO $$ BEGIN ASSERT (to_regnamespace('saltern_restoring') IS NOT NULL) = \(isThere); END $$")
        }
    }

    /// A database that is empty but for the mark.
    private func withGround(_ body: @escaping @Sendable (Ground) async throws -> Void) async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let loop = try EventLoop(name: "restorer")
            try loop.start()
            defer { loop.stop() }
            let ground = Ground(
                console: Console(environment: ["SALTERN_OWNER_DATABASE_URL": database.ownerURL]),
                configuration: try .patient(database.ownerURL), loop: loop)
            try await ground.run("DROP SCHEMA saltern CASCADE")
            try await RestoreMark.make(ground.console)
            try await ground.expectMark(true)
            try await body(ground)
        }
    }

    @Test func `the mark of a restore of which nothing has come is removed, and no schema is left`() async throws {
        try await withGround { ground in
            #expect(await RestoreMark.removeIfUnused(ground.console))
            try await ground.expectMark(false)
            try await ground.run("CREATE SCHEMA saltern")
        }
    }

    @Test func `the mark stays while somebody restores who has not committed, and when he has`() async throws {
        try await withGround { ground in
            try await DatabaseCommand.asOwner(ground.console, needsSchema: false) { database in
                try await database.withTransaction { transaction in
                    _ = try await transaction.execute(ComeBack())
                    #expect(await !RestoreMark.removeIfUnused(ground.console))
                    try await ground.expectMark(true)
                }
            }
            #expect(await !RestoreMark.removeIfUnused(ground.console))
            try await ground.expectMark(true)
        }
    }

    @Test func `while somebody restores nobody else does, nor finishes it`() async throws {
        try await withGround { ground in
            try await RestoreLock.holding(ground.console) {
                let refusal = await #expect(throws: CommandFailure.self) {
                    try await RestoreLock.holding(ground.console) { Issue.record("two restore at once") }
                }
                #expect(refusal?.messages.first?.contains("a restore of the database is under way (process ") ?? false)
                var none = try Arguments([], OptionNames(of: MigrateUp.self))
                let command = try TellRestored(&none)
                await #expect(throws: CommandFailure.self) { try await command.run(ground.console) }
                try await ground.expectMark(true)
            }
            #expect(try await RestoreLock.holding(ground.console) { 1 } == 1)
        }
    }

    @Test func `a restore waits for the sessions of servers, and tells whose stay`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let console = Console(environment: ["SALTERN_OWNER_DATABASE_URL": database.ownerURL])
            let server = try PostgresConfiguration.patient(database.serverURL)
            try await DatabaseCommand.with(server, from: .databaseURL) { client in
                _ = try await SchemaProblem.find(in: client)
                let refusal = await #expect(throws: CommandFailure.self) {
                    try await ServerSessions.waitUntilGone(console, within: .milliseconds(300))
                }
                let message = refusal?.messages.first ?? ""
                #expect(message.contains(" of saltern_test_server (saltern): stop them"), "\(message)")
            }
            try await ServerSessions.waitUntilGone(console, within: .seconds(60))
        }
    }

    @Test func `the mark stays until all sessions have ended, also when that was interrupted`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let loop = try EventLoop(name: "restorer")
            try loop.start()
            defer { loop.stop() }
            let console = Console(
                environment: ["SALTERN_OWNER_DATABASE_URL": database.ownerURL], output: .nullDevice, error: .nullDevice)
            let ground = Ground(console: console, configuration: try .patient(database.ownerURL), loop: loop)
            try await ground.run(
                """
                INSERT INTO saltern.installation
                    (salt_prefix, decoy_secret, decoy_iterations, decoys_drawn_at, created_at, fingerprint)
                VALUES ('com.example.test:', decode(repeat('00', 32), 'hex'), array_fill(600000, ARRAY[256]),
                    '-infinity', now(), saltern.database_fingerprint());
                CREATE SCHEMA saltern_restoring
                """)
            var words = try Arguments(["--end-sessions"], OptionNames(of: TellRestored.self))
            let command = try TellRestored(&words)
            let interruption = Interruption([SIGUSR1])
            kill(getpid(), SIGUSR1)
            while !interruption.wish.isThere { try await Task.sleep(for: .milliseconds(1)) }
            var listening = console
            listening.wish = interruption.wish
            let interrupted = listening
            await #expect(throws: CommandFailure.self) { try await command.run(interrupted) }
            try await ground.expectMark(true)
            try await command.run(console)
            try await ground.expectMark(false)
        }
    }

    @Test func `the lock goes with whoever has it, and what fails gives it back`() async throws {
        try await withGround { ground in
            try await RestoreLock.holding(ground.console) {
                try await ground.run(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
                        + "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
                try await RestoreLock.holding(ground.console) {}
            }
            await #expect(throws: CommandFailure.self) {
                try await RestoreLock.holding(ground.console) { throw CommandFailure("no luck") }
            }
            try await RestoreLock.holding(ground.console) {}
        }
    }
}

private struct ComeBack: Statement {
    typealias Row = Void

    static let sql: SQL<Self> = "CREATE SCHEMA saltern"
}
