import Postgres

/// The token hashes that are stored.
struct StoredHash: Statement {
    static let isReadOnly = true
    static let sql = "SELECT token_hash FROM saltern.sessions"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> [UInt8] { try row.next() }
}
