import Foundation
import SalternTesting
import Testing

@testable import Postgres

/// libpq says on standard error, and in nobody's log, that it does not read a file of passwords.
@Suite struct PasswordFileTests {
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = directory.path + "/.pgpass"
        try Data("*:*:*:*:secret".utf8).write(to: URL(filePath: file))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
    }

    private func settle(
        _ options: [(keyword: String, value: String)], _ variables: [String: String] = [:]
    ) throws(PostgresError) -> String? {
        let home = ["HOME": directory.path]
        let settled = try PasswordFile.settle(options) { (home.merging(variables) { $1 })[$0] }
        return settled.last { $0.keyword == "passfile" }?.value
    }

    @Test func `a file that somebody names and others can read is refused`() throws {
        let named = try #require(throws: PostgresError.self) { try settle([("passfile", file)]) }
        #expect("\(named)".contains("\(file) is not usable: other users can read"))
        #expect(throws: PostgresError.self) { try settle([], ["PGPASSFILE": file]) }
        let url = "postgresql://ada@localhost/saltern?passfile=\(file)"
        #expect(throws: PostgresError.self) { try PostgresConfiguration(url) }
        #expect(throws: PostgresError.self) { try settle([("passfile", "/dev/null")]) }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        #expect(try settle([("passfile", file)]) == file)
        #expect(throws: Never.self) { try PostgresConfiguration(url) }
    }

    @Test func `the one that everybody has at home is passed by, so that libpq has nothing to say`() throws {
        #expect(try settle([]) == PasswordFile.nowhere)
        #expect(!FileManager.default.fileExists(atPath: PasswordFile.nowhere))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        #expect(try settle([]) == nil)
        try FileManager.default.removeItem(atPath: file)
        #expect(try settle([]) == nil)
    }

    @Test func `where a password is given no file is looked for`() throws {
        #expect(try settle([("password", "x"), ("passfile", file)]) == file)
        #expect(try settle([("passfile", file)], ["PGPASSWORD": "x"]) == file)
        #expect(try settle([("passfile", file), ("service", "x")]) == file)
    }
}
