import CommandLineKit
import Foundation
import SalternServer
import SalternTesting
import Testing

@testable import saltern

/// What commands say of a database that they cannot work with.
extension CommandLineTests {
    /// Every command that works with the schema, with words that would do.
    private static let commandsOfSchema: [[String]] = [
        ["account", "list"], ["account", "show", "ada"], ["account", "events", "ada"], ["account", "lock", "ada"],
        ["account", "unlock", "ada"], ["account", "end-sessions", "ada"], ["account", "set-plan", "ada", "pro"],
        ["account", "delete", "ada", "--yes"], ["account", "delete", "--never-used", "--older-than", "30d", "--yes"],
        ["account", "remove-second-factor", "ada"], ["account", "restore-keyring", "ada"], ["plan", "list"],
        ["plan", "set", "pro", "--items", "1"],
        ["invite", "create"], ["invite", "list"], ["invite", "revoke", "11111111-2222-3333-4444-555555555555"],
        ["audit", "list"], ["audit", "verify"], ["stats"], ["purge"], ["restored"], ["restored", "--end-sessions"],
    ]

    /// Fails unless every command fails with this remedy, and without a code that nobody can read.
    private func expectAll(
        _ remedy: String, _ environment: [String: String], _ commands: [[String]] = commandsOfSchema
    ) async throws {
        let directory = try TemporaryDirectory()
        let key = directory.path + "/master.key"
        _ = try MasterKeyFile(path: key).create()
        let environment = environment.merging(["SALTERN_MASTER_KEY_FILE": key]) { $1 }
        for words in commands {
            let outcome = try await run(words, environment: environment)
            #expect(outcome.status == 1, "\(words): \(outcome)")
            #expect(outcome.error.contains(remedy), "\(words): \(outcome)")
            #expect(!outcome.error.contains("SQLSTATE"), "\(words): \(outcome)")
        }
    }

    @Test func `without a schema every command says how to make it`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await database.administer("DROP SCHEMA saltern CASCADE")
            let owner = ["SALTERN_DATABASE_URL": database.ownerURL]
            let commands = Self.commandsOfSchema + [["master-key", "reseal"], ["master-key", "prune"]]
            try await expectAll(
                "the database has no schema saltern: create it with `saltern migrate up`", owner, commands)
            let backup = try await run("backup", "\(TemporaryDirectory().missing)/file", environment: owner)
            #expect(backup.error.contains("the database has no schema saltern: nothing to back up"))
            let verify = try await run("migrate", "verify", environment: owner)
            #expect(verify.error.contains("is not applied: run `saltern migrate up`"))
        }
    }

    @Test func `on an older schema every command says how to bring it up to date`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await database.administer("DELETE FROM saltern.schema_migrations WHERE version > 5")
            try await expectAll(
                "the database's schema is older than this program: run `saltern migrate up`",
                ["SALTERN_DATABASE_URL": database.ownerURL])
        }
    }

    @Test func `on a newer schema every command asks for the newer program, unless this one works with it`()
        async throws
    {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let owner = ["SALTERN_DATABASE_URL": database.ownerURL]
            try await database.administer(
                """
                INSERT INTO saltern.schema_migrations (version, name, checksum, oldest_program)
                    VALUES (99, 'later', sha256(''), 99)
                """)
            try await expectAll("the database's schema is newer than this program: install the newer program", owner)
            try await database.administer("UPDATE saltern.schema_migrations SET oldest_program = 1 WHERE version = 99")
            #expect(try await run("plan", "list", environment: owner).status == 0)
        }
    }

    @Test func `a role that may not use the schema is told who may`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let server = ["SALTERN_DATABASE_URL": database.serverURL]
            let refused = try await run("plan", "set", "pro", "--items", "1", environment: server)
            #expect(refused.error.contains("the role of SALTERN_DATABASE_URL lacks the right; use the schema's owner"))
            try await database.administer("REVOKE ALL ON SCHEMA saltern FROM saltern_server")
            try await expectAll("the role may not use the schema saltern: connect as its owner", server)
        }
    }

    @Test func `a database that cannot be reached is told with the setting that leads there`() async throws {
        let nowhere = "postgresql://127.0.0.1:1/saltern"
        let commands = [["plan", "list"], ["restored"], ["backup", "x"], ["migrate", "status"]]
        try await expectAll(
            "check that PostgreSQL runs, and that SALTERN_OWNER_DATABASE_URL leads there",
            ["SALTERN_OWNER_DATABASE_URL": nowhere], commands)
        try await expectAll(
            "and that SALTERN_DATABASE_URL leads there", ["SALTERN_DATABASE_URL": nowhere], [["purge"], ["stats"]])
    }
}
