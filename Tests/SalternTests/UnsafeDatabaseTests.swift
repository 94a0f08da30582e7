import CommandLineKit
import EventLoop
import Foundation
import HTTPCore
import Postgres
import SalternServer
import SalternTesting
import Testing
import TransportSecurity

@testable import saltern

/// A database that can lose what it has said to be committed.
@Suite struct UnsafeDatabaseTests {
    @Test func `what makes commits unsafe is refused at the start, and the doctor names it`() async throws {
        let directory = try TemporaryDirectory()
        let certificates = CertificateDirectory(path: directory.path + "/tls")
        _ = try certificates.create(hosts: [Host("localhost")])
        let masterKey = MasterKeyFile(path: directory.path + "/master.key")
        _ = try masterKey.create()
        try await TemporaryCluster.with { cluster in
            let loop = try EventLoop(name: "administrator")
            try loop.start()
            defer { loop.stop() }
            func administer(_ statements: [String]) async throws {
                try await PostgresScript.run(statements, configuration: .patient(cluster.url), loop: loop)
            }
            try await administer(["CREATE ROLE saltern_server NOLOGIN"])
            _ = try await Migrator(
                configuration: .patient(cluster.url), migrations: Schema.migrations, loop: loop
            ).up()
            let environment = [
                "SALTERN_DATABASE_URL": cluster.url, "SALTERN_TLS_DIRECTORY": certificates.path,
                "SALTERN_MASTER_KEY_FILE": masterKey.path, "SALTERN_LISTEN": "127.0.0.1:0",
                "SALTERN_SALT_PREFIX": "com.example.test:", "SALTERN_LOOPS": "1",
            ]
            for setting in ["full_page_writes", "synchronous_commit"] {
                try await administer(["ALTER SYSTEM RESET ALL", "ALTER SYSTEM SET \(setting) = off"])
                try await cluster.stop(.fast)
                try await cluster.start()
                // A cluster for tests never has fsync.
                let expected = ["fsync", setting]
                let refusal = await #expect(throws: UnsafeDatabase.self) { try await start(environment) }
                #expect(try #require(refusal).settings.map(\.name) == expected)
                let problems = try await examine(environment, directory.path)
                #expect(problems.count == expected.count)
                for (problem, name) in zip(problems, expected) { #expect(problem.contains("\(name) is off")) }
            }
        }
    }

    private func start(_ environment: [String: String]) async throws {
        var configuration = try ServeConfiguration(environment, coreCount: 1)
        configuration.database.becomePatient()
        let log = Log(minimumLevel: .error, sink: CapturedLog()) { UTCTimestamp(microsecondsSinceEpoch: 0) }
        let server = try await RunningServer.start(configuration, log: log, onTakeover: {})
        await server.stop(timeout: .seconds(10))
    }

    /// What `saltern doctor` says of the database's settings to be a problem.
    private func examine(_ environment: [String: String], _ folder: String) async throws -> [String] {
        let output = folder + "/output"
        try #require(FileManager.default.createFile(atPath: output, contents: nil))
        let handle = try #require(FileHandle(forWritingAtPath: output))
        let console = Console(environment: environment, output: handle, error: .nullDevice)
        #expect(await CommandLineTool.saltern.run(["doctor", "--json"], console: console) == 1)
        let data = try Data(contentsOf: URL(filePath: output))
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        return try #require(object["findings"] as? [[String: String]])
            .filter { $0["subject"] == "database_settings" && $0["severity"] == "problem" }
            .compactMap { $0["text"] }
    }
}
