import CommandLineKit
import Foundation
import Postgres
import SalternServer

/// A file that `saltern backup` has written.
struct BackupFile {
    let content: OpenFile
    let console: Console

    /// The tables whose rows it has.
    func tables() throws -> [String] {
        let list = try DatabaseProgram("pg_restore", console).run(["--list"], input: content)
        return list.split(separator: "\n").filter { $0.contains(" TABLE DATA saltern ") }.map(String.init)
    }

    /// Reads back what was just written.
    func check(tables expected: Int) throws {
        let found = try tables().count
        guard found == expected else {
            throw CommandFailure("the backup has \(found) tables, and the database \(expected)")
        }
        try readWhole()
        guard try BackupDigest.check(content, console) == .matches else {
            throw CommandFailure("nothing was kept: the backup is not read back as it was written")
        }
    }

    /// Has `pg_restore` read all of it, which notices some damage.
    private func readWhole() throws {
        try DatabaseProgram("pg_restore", console).run(["--file", "/dev/null"], input: content)
    }

    /// Refuses one that is not as it was written, before anything is changed.
    /// - Parameter name: What people know it by.
    /// - Returns: How many tables it has.
    func requireWhole(_ name: String) throws -> Int {
        let digest = try BackupDigest.check(content, console)
        guard digest != .differs else {
            throw CommandFailure(
                "nothing was restored: \(name) is damaged: its SHA-256 is not the one that its last line says")
        }
        let tables = try tables().count
        guard tables > 0 else { throw CommandFailure("\(name) is no backup of saltern") }
        if digest == .missing {
            console.notice(
                "\(name) has no SHA-256 in its last line (version 0.9.0 wrote none, and pg_dump writes none): not all damage "
                    + "to it would be noticed", code: "backup_without_digest")
            try readWhole()
        }
        return tables
    }

    /// Refuses one whose schema this program could not bring up to date.
    /// - Throws: ``CommandFailure``.
    func requireKnownSchema() throws {
        let rows = try DatabaseProgram("pg_restore", console).run(
            ["--data-only", "--schema", "saltern", "--table", "schema_migrations", "--file", "-"], input: content)
        let obstacles = Migrator.obstacles(to: Schema.migrations, after: Self.history(rows))
        guard obstacles.isEmpty else {
            throw CommandFailure(obstacles.map { "nothing was restored: \($0)" })
        }
    }

    /// The rows of the history, from what `pg_restore` makes of them: COPY's text format, its columns named.
    static func history(_ script: String) -> [MigrationRecord] {
        var columns: [String]?
        var records: [MigrationRecord] = []
        for line in script.split(separator: "\n") {
            if line.hasPrefix("COPY saltern.schema_migrations (") {
                let names = line.split(separator: "(")[1].prefix { $0 != ")" }
                columns = names.split(separator: ",").map { $0.filter { $0 != " " } }
            } else if line == "\\." {
                columns = nil
            } else if let columns {
                let values = line.split(separator: "\t", omittingEmptySubsequences: false)
                let row = Dictionary(zip(columns, values)) { first, _ in first }
                guard let version = row["version"].flatMap({ Int($0) }), let name = row["name"] else { continue }
                records.append(
                    MigrationRecord(
                        version: version, name: String(name), checksum: bytes(row["checksum"] ?? ""),
                        oldestProgram: row["oldest_program"].flatMap { Int($0) }))
            }
        }
        return records
    }

    /// `\\xDEADBEEF`, whose backslash is doubled.
    private static func bytes(_ text: Substring) -> [UInt8] {
        let digits = Array(text.drop { $0 == "\\" }.dropFirst())
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
    }
}
