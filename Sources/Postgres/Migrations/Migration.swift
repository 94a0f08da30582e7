public import Cryptography

/// One numbered change of the schema: plain SQL with one or more statements, which `psql` can run too.
public struct Migration: Sendable {
    /// The number, from 1 without gaps.
    public let version: Int
    /// The name, as in the file's name `0001_name.sql`.
    public let name: String
    /// The file's text. It runs inside a transaction and must not end it.
    public let sql: String
    /// The newest migration that a program must have to work with this schema. Programs without it do not work.
    public let oldestProgram: Int
    /// True if it removes objects that the previous release still needs.
    ///
    /// ``Migrator/finish()`` applies it, or a later release's ``Migrator/up()``.
    public let isFinishing: Bool
    /// SHA-256 of ``sql`` as UTF-8.
    public let checksum: SHA256Digest

    /// Makes a migration and computes its checksum.
    ///
    /// Lines of its first comment can control a rolling upgrade. `-- compatible with: 8` sets ``oldestProgram``, by
    /// default the migration's own number. `-- phase: finish` makes it a finishing one.
    public init(version: Int, name: String, sql: String) {
        self.version = version
        self.name = name
        self.sql = sql
        oldestProgram = Self.remark("compatible with", in: sql).flatMap { Int($0) } ?? version
        isFinishing = Self.remark("phase", in: sql) == "finish"
        checksum = SHA256.hash(sql.utf8)
    }

    private static func remark(_ name: String, in sql: String) -> Substring? {
        var rest = sql[...]
        while rest.hasPrefix("--") {
            let line = rest.prefix { $0 != "\n" }
            if line.hasPrefix("-- \(name): ") { return line.dropFirst(name.count + 5) }
            rest = rest[line.endIndex...].dropFirst()
        }
        return nil
    }
}
