import Postgres

/// The token hashes that are stored.
struct StoredHash: Statement {
    typealias Row = [UInt8]
    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT token_hash FROM saltern.sessions"
}
