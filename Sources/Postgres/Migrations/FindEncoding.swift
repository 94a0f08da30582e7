/// Returns the encoding in which the database stores text.
public struct FindEncoding: Statement {
    public typealias Row = String

    /// The only encoding that can store every text of a client.
    public static let needed = "UTF8"

    public static let isReadOnly = true
    public static let sql: SQL<Self> = "SELECT pg_catalog.current_setting('server_encoding')"

    public init() {}
}
