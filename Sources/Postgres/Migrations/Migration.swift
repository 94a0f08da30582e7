/// One numbered change of the schema: plain SQL, possibly several statements, that `psql` can run too.
public struct Migration: Sendable {
    /// The number, from 1 without gaps.
    public let version: Int
    /// What it does, as in the file's name `0001_name.sql`.
    public let name: String
    /// The file's text.
    public let sql: String

    /// A migration; its checksum is SHA-256 of `sql`.
    public init(version: Int, name: String, sql: String) {
        self.version = version
        self.name = name
        self.sql = sql
    }
}
