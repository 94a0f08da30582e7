import CommandLineKit
import Foundation
import Glibc
import Postgres
import SalternServer
import SalternTesting
import Testing

@testable import saltern

/// What an operator is told to look at.
@Suite struct DatabaseHintTests {
    private static let way = "no firewall drops packets"
    private static let absence = "check that PostgreSQL runs, and that SALTERN_DATABASE_URL leads there"

    @Test(arguments: [
        (
            ConnectionFailure.server(.tooManyConnections),
            "PostgreSQL runs at the address of SALTERN_DATABASE_URL and must accept one more connection"
        ),
        (.server(.invalidPassword), "check SALTERN_DATABASE_URL"), (.timedOut, way), (.system(ETIMEDOUT), way),
        (.system(ECONNREFUSED), absence), (.option("sslmode"), "check SALTERN_DATABASE_URL"),
    ])
    func `the hint is about the reason`(reason: ConnectionFailure, hint: String) throws {
        let error = PostgresError.unavailable(retryAfter: .seconds(1), because: reason)
        let message = try #require(DatabaseCommand.failure(error, .databaseURL).messages.first)
        #expect(message.contains(hint))
        #expect(hint == Self.absence || !message.contains("check that PostgreSQL runs"))
    }

    @Test func `a host that is silent in the middle of a statement is not said to be stopped`() {
        #expect(DatabaseCommand.failure(PostgresError.timedOut, .databaseURL).messages[0].contains(Self.way))
    }

    @Test func `what is read-only by a setting is not called a standby`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await database.administer(
                "ALTER DATABASE \(database.name) SET default_transaction_read_only = on; DROP SCHEMA saltern CASCADE")
            let variables = ["SALTERN_OWNER_DATABASE_URL": database.ownerURL]
            let directory = try TemporaryDirectory()
            let errors = directory.path + "/errors"
            try #require(FileManager.default.createFile(atPath: errors, contents: nil))
            let handle = try #require(FileHandle(forWritingAtPath: errors))
            let console = Console(environment: variables, output: .nullDevice, error: handle)
            let failure = await #expect(throws: CommandFailure.self) { try await RestoreMark.make(console) }
            var messages = try #require(failure?.messages)
            #expect(await CommandLineTool.saltern.run(["migrate", "up"], console: console) == 1)
            messages.append(try String(contentsOfFile: errors, encoding: .utf8))
            for message in messages {
                #expect(
                    message.contains("default_transaction_read_only is on for the role or the database of SALTERN_OWN"))
                #expect(!message.contains("standby") && !message.contains("SQLSTATE"), "\(message)")
            }
        }
    }

    @Test func `a backup of a schema that is not whole says what it is, and what to do`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await database.administer("DROP TABLE saltern.installation")
            let directory = try TemporaryDirectory()
            let errors = directory.path + "/errors"
            try #require(FileManager.default.createFile(atPath: errors, contents: nil))
            let console = Console(
                environment: ["SALTERN_OWNER_DATABASE_URL": database.ownerURL], output: .nullDevice,
                error: try #require(FileHandle(forWritingAtPath: errors)))
            let file = directory.path + "/saltern.backup"
            #expect(await CommandLineTool.saltern.run(["backup", file], console: console) == 1)
            let said = try String(contentsOfFile: errors, encoding: .utf8)
            #expect(said.contains("nothing was written") && said.contains("incomplete"), "\(said)")
            #expect(said.contains("saltern migrate verify") && said.contains("42P01"), "\(said)")
            #expect(!FileManager.default.fileExists(atPath: file))
        }
    }

    @Test func `a role that may not make the mark of a restore is told what it needs`() async throws {
        try await TemporaryDatabase.with(migrations: Schema.migrations) { database in
            try await database.administer("DROP SCHEMA saltern CASCADE")
            let console = Console(environment: ["SALTERN_OWNER_DATABASE_URL": database.serverURL])
            let failure = await #expect(throws: CommandFailure.self) { try await RestoreMark.make(console) }
            let message = failure?.messages.first ?? ""
            #expect(message.hasPrefix("SALTERN_OWNER_DATABASE_URL: its role may not create schemas"), "\(message)")
            #expect(!message.contains("SQLSTATE"))
        }
    }
}
