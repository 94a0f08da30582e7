public import Cryptography

/// One numbered change of the schema: plain SQL, possibly several statements, that `psql` can run too.
public struct Migration: Sendable {
    /// The number, from 1 without gaps.
    public let version: Int
    /// What it does, as in the file's name `0001_name.sql`.
    public let name: String
    /// The file's text. It runs inside a transaction and must not end it.
    public let sql: String
    /// SHA-256 of ``sql`` as UTF-8.
    public let checksum: SHA256Digest

    /// A migration; its checksum is computed.
    public init(version: Int, name: String, sql: String) {
        self.version = version
        self.name = name
        self.sql = sql
        checksum = SHA256.hash(sql.utf8)
    }
}
