public import Cryptography

/// One numbered change of the schema: plain SQL, possibly several statements, that `psql` can run too.
public struct Migration: Sendable {
    /// The number, from 1 without gaps.
    public let version: Int
    /// What it does, as in the file's name `0001_name.sql`.
    public let name: String
    /// The file's text. It runs inside a transaction and must not end it.
    public let sql: String
    /// Programs that know the migrations up to this one work with the schema after it as well. Nobody older does.
    public let oldestProgram: Int
    /// Whether it takes away what the release before still needs: applied by ``Migrator/finish()``, or by a later
    /// release's ``Migrator/up()``.
    public let isFinishing: Bool
    /// SHA-256 of ``sql`` as UTF-8.
    public let checksum: SHA256Digest

    /// A migration; its checksum is computed.
    ///
    /// Lines of the comment that it begins with may say what a rolling upgrade has to know:
    /// `-- compatible with: 8` gives ``oldestProgram``, which is the migration itself otherwise; `-- phase: finish` makes
    /// it a finishing one.
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
