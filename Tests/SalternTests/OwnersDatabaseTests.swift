import CommandLineKit
import Foundation
import SalternServer
import SalternTesting
import Testing

@testable import saltern

extension CommandLineTests {
    @Test func `a command of the owner's works on the server's database or on none`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { server in
            try await TemporaryDatabase.with(migrations: Schema.migrations) { other in
                let wrong = ["SALTERN_DATABASE_URL": server.serverURL, "SALTERN_OWNER_DATABASE_URL": other.ownerURL]
                for words in [
                    ["account", "list"], ["audit", "verify"], ["stats"], ["invite", "create"], ["migrate", "up"],
                    ["migrate", "status"], ["migrate", "verify"], ["backup", "/nowhere/file"], ["restored"],
                    ["plan", "set", "pro"],
                ] {
                    let outcome = try await run(words, environment: wrong)
                    #expect(outcome.status == 1, "\(words) \(outcome)")
                    #expect(outcome.error.contains("SALTERN_OWNER_DATABASE_URL leads to the database "), "\(outcome)")
                    #expect(outcome.error.hasSuffix(": nothing was done\n"), "\(outcome)")
                }
                let right = ["SALTERN_DATABASE_URL": other.serverURL, "SALTERN_OWNER_DATABASE_URL": other.ownerURL]
                #expect(try await run(["invite", "list"], environment: right).output.hasPrefix("id "))
                #expect(try await run(["migrate", "verify"], environment: right).status == 0)
                // A server's URL that leads nowhere is the doctor's to report.
                let half = [
                    "SALTERN_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
                    "SALTERN_OWNER_DATABASE_URL": other.ownerURL,
                ]
                #expect(try await run(["migrate", "status"], environment: half).status == 0)
            }
        }
    }

    @Test func `a superuser of another cluster makes no roles there`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let folder = try TemporaryDirectory()
            let file = folder.path + "/saved.backup"
            let owner = ["SALTERN_OWNER_DATABASE_URL": database.ownerURL]
            #expect(try await run(["backup", file], environment: owner).status == 0)
            try await TemporaryCluster.with { cluster in
                for variable in ["SALTERN_OWNER_DATABASE_URL", "SALTERN_DATABASE_URL"] {
                    // The other URL does not work yet.
                    let nowhere = "postgresql://nobody@127.0.0.1:1/none"
                    var settings = [
                        "SALTERN_OWNER_DATABASE_URL": nowhere, "SALTERN_DATABASE_URL": nowhere,
                        "SALTERN_SUPERUSER_DATABASE_URL": cluster.url,
                    ]
                    settings[variable] = variable == "SALTERN_DATABASE_URL" ? database.serverURL : database.ownerURL
                    let outcome = try await run(["restore", file], environment: settings)
                    #expect(outcome.status == 1, "\(outcome)")
                    #expect(
                        outcome.error.hasSuffix(
                            "SUPERUSER_DATABASE_URL leads to another cluster than \(variable): nothing was done\n"),
                        "\(outcome)")
                }
                let console = Console(environment: ProcessInfo.processInfo.environment)
                let roles = DatabaseProgram("psql", console, password: nil)
                #expect(
                    try roles.run([
                        "--no-psqlrc", "-Atc", "SELECT count(*) FROM pg_roles WHERE rolname !~ '^pg_'", "--dbname",
                        cluster.url,
                    ]) == "1\n")
            }
        }
    }

    @Test func `settings of role and database change no finding and no backup`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            let settings = [
                "bytea_output = 'escape'", "quote_all_identifiers = on", "DateStyle = 'German, DMY'",
                "IntervalStyle = 'sql_standard'", "TimeZone = 'Pacific/Chatham'", "extra_float_digits = -15",
                "standard_conforming_strings = off", "transform_null_equals = on", "search_path = 'nowhere'",
                "default_transaction_isolation = 'serializable'", "row_security = off", "client_encoding = 'LATIN1'",
                "array_nulls = off", "check_function_bodies = off",
            ]
            try await database.administer(
                settings.map {
                    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ' || \(Self.quoted($0)), current_database()); "
                        + "END $$"
                }.joined(separator: ";\n"))
            let owner = ["SALTERN_OWNER_DATABASE_URL": database.ownerURL]
            let verified = try await run(["migrate", "verify"], environment: owner)
            #expect(verified.status == 0, "\(verified)")
            let folder = try TemporaryDirectory()
            let file = folder.path + "/saved.backup"
            let saved = try await run(["backup", file], environment: owner)
            #expect(saved.status == 0, "\(saved)")
            let backup = BackupFile(content: try OpenFile(reading: file), console: Console(environment: [:]))
            #expect(try backup.obstacles().isEmpty)
            try await database.administer("DROP SCHEMA saltern CASCADE")
            let restored = try await run(["restore", file], environment: owner)
            #expect(restored.status == 0, "\(restored)")
            let again = try await run(["migrate", "verify"], environment: owner)
            #expect(again.status == 0, "\(again)")
        }
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.replacingOccurrences(of: "'", with: "''").replacingOccurrences(of: "%", with: "%%") + "'"
    }

    @Test func `children of a command inherit no URL and no settings of text`() async throws {
        let variables = [
            "SALTERN_OWNER_DATABASE_URL": "postgresql://secret", "SALTERN_DATABASE_URL": "postgresql://secret",
            "SALTERN_SUPERUSER_DATABASE_URL": "postgresql://secret", "PGCLIENTENCODING": "LATIN1", "PGTZ": "CET",
            "PGHOST": "/run", "PATH": "/usr/bin:/bin",
        ]
        let program = DatabaseProgram("env", Console(environment: variables), password: "word")
        let lines = Set(try program.run([]).split(separator: "\n").map(String.init))
        for text in ["SALTERN_", "PGTZ", "LATIN1"] { #expect(!lines.contains { $0.contains(text) }, "\(lines)") }
        #expect(lines.isSuperset(of: ["PGHOST=/run", "PGPASSWORD=word", "PGCLIENTENCODING=UTF8", "LC_ALL=C"]))
    }
}
