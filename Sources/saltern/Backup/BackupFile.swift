import CommandLineKit
import Cryptography
import Foundation
import Postgres
import SalternServer

/// A file from `saltern backup`.
struct BackupFile {
    let content: OpenFile
    let console: Console

    /// Returns the tables with rows in the backup.
    func tables() throws -> [String] {
        let list = try DatabaseProgram("pg_restore", console).run(["--list"], input: content)
        return list.split(separator: "\n").filter { $0.contains(" TABLE DATA saltern ") }.map(String.init)
    }

    /// Reads back a new backup.
    func check(tables expected: Int) throws {
        let found = try tables().count
        guard found == expected else {
            throw CommandFailure("the backup has \(found) tables, and the database \(expected)")
        }
        try readWhole()
        guard try BackupDigest.check(content, console) == .matches else {
            throw CommandFailure("the backup was discarded: the file differs from the written data")
        }
    }

    /// Makes `pg_restore` read the whole file, which detects some damage.
    private func readWhole() throws {
        try DatabaseProgram("pg_restore", console).run(["--file", "/dev/null"], input: content)
    }

    /// Rejects a damaged backup before anything is changed.
    /// - Parameter name: The backup's name in messages.
    /// - Returns: The number of its tables.
    func requireWhole(_ name: String) throws -> Int {
        let digest = try BackupDigest.check(content, console)
        guard digest != .differs else {
            throw CommandFailure(
                "nothing was restored: \(name) is damaged: its SHA-256 differs from the one in its last line")
        }
        let tables = try tables().count
        guard tables > 0 else { throw CommandFailure("\(name) is not a backup of saltern") }
        if digest == .missing {
            console.notice(
                "\(name) has no SHA-256 in its last line (version 0.9.0 wrote none, and pg_dump writes none): "
                    + "damage may stay undetected", code: "backup_without_digest")
            try readWhole()
        }
        return tables
    }

    /// Rejects a backup with a schema that this program cannot upgrade.
    /// - Throws: ``CommandFailure``.
    func requireKnownSchema() throws {
        let obstacles = try obstacles()
        guard obstacles.isEmpty else {
            throw CommandFailure(obstacles.map { "nothing was restored: \($0)" })
        }
    }

    /// Returns the faults that stop this program from upgrading the backup's schema.
    func obstacles() throws -> [MigrationFinding] {
        let rows = try DatabaseProgram("pg_restore", console).run(
            ["--data-only", "--schema", "saltern", "--table", "schema_migrations", "--file", "-"], input: content)
        return Migrator.obstacles(to: Schema.migrations, after: Self.history(rows))
    }

    /// Parses the history's rows from the output of `pg_restore`: COPY's text format with named columns.
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

    /// Decodes a `bytea` in COPY's text format, which doubles backslashes.
    ///
    /// The session that wrote the backup had `bytea_output` as `hex` (`\\xDEADBEEF`) or as `escape` (`a\\000b`).
    static func bytes(_ field: Substring) -> [UInt8] {
        var text: [UInt8] = []
        var rest = field.utf8[...]
        while let byte = rest.popFirst() {
            text.append(byte == backslash ? rest.popFirst() ?? byte : byte)
        }
        guard text.starts(with: [backslash, UInt8(ascii: "x")]) else { return unescaped(text[...]) }
        let digits = text.dropFirst(2).map { Character(Unicode.Scalar($0)) }
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
    }

    private static let backslash = UInt8(ascii: "\\")

    /// Decodes the format `escape`: a doubled backslash, or a backslash with three octal digits for an unprintable
    /// byte.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            if byte != backslash {
                bytes.append(byte)
            } else if rest.first == backslash {
                bytes.append(backslash)
                rest.removeFirst()
            } else if let number = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8) {
                bytes.append(number)
                rest = rest.dropFirst(3)
            }
        }
        return bytes
    }
}

/// The last line of a backup: the SHA-256 of everything before it.
///
/// `pg_restore` reads the parts in its table of contents, and ignores later bytes. So the digest can be in the file
/// itself, and stays with it when the file is moved or renamed.
enum BackupDigest {
    enum Finding {
        case matches
        /// The content was changed, or the end is missing.
        case differs
        /// Another program wrote the file, or version 0.9.0 of this one.
        case missing
    }

    /// Starts with a newline, so that `head -n -1` writes exactly the digested bytes.
    private static let introduction = Array("\nsaltern backup, SHA-256 of all before this line: ".utf8)
    private static let length = introduction.count - 1 + 2 * SHA256Digest.byteCount + 1
    /// The distance from the end within which it is searched: accidentally appended bytes must not hide it.
    private static let reach = 65_536

    static func append(to file: OpenFile, _ console: Console) throws(CommandFailure) {
        try file.append(introduction.prefix(1))
        try file.append(line(for: file, upTo: file.size(), console)[...])
    }

    /// Reads the whole file and compares its digest.
    static func check(_ file: OpenFile, _ console: Console) throws(CommandFailure) -> Finding {
        let size = try file.size()
        let start = max(0, size - reach)
        guard hasTraces(try file.bytes(at: start, count: size - start)) else { return .missing }
        guard size > length else { return .differs }
        let expected = try line(for: file, upTo: size - length, console)
        return try file.bytes(at: size - length, count: length) == expected ? .matches : .differs
    }

    /// Returns true for remains of a digest, so that a damaged one does not count as missing.
    private static func hasTraces(_ end: [UInt8]) -> Bool {
        let introduction = introduction
        for start in end.indices {
            let overlap = min(end.count - start, introduction.count)
            var agreeing = 0
            for index in 0..<overlap where end[start + index] == introduction[index] { agreeing += 1 }
            if agreeing >= max(7, overlap / 2) { return true }
        }
        return false
    }

    private static func line(for file: OpenFile, upTo end: Int, _ console: Console) throws(CommandFailure) -> [UInt8] {
        var hash = SHA256.Incremental()
        var bar = ProgressBar(console, "MiB checked")
        defer { bar.end() }
        var done = 0
        while done < end {
            let piece = try file.bytes(at: done, count: min(1 << 20, end - done))
            guard !piece.isEmpty else { throw CommandFailure("the file became shorter while it was read") }
            hash.update(piece)
            done += piece.count
            bar.show(done >> 20)
            if let wish = console.wish, wish.isThere { throw wish.fulfilled("ended by a signal") }
        }
        return introduction.dropFirst() + Array("\(Hex.encode(hash.finalize()))\n".utf8)
    }
}
