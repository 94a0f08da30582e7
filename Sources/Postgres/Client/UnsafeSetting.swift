/// A setting of the database with which a commit is not what it seems.
public struct UnsafeSetting: Sendable, Hashable, CustomStringConvertible {
    /// The setting's name.
    public let name: String
    /// What it is for this client's role.
    public let value: String

    public var description: String {
        name == "default_transaction_isolation"
            ? "\(name) is '\(value)' and has to be 'read committed'"
            : "\(name) is \(value): what was committed can be lost"
    }
}

extension PostgresClient {
    /// The settings that let the server lose what it has said to be committed, or that change what a statement sees, as
    /// they are for this client's role.
    public func unsafeSettings() async throws(PostgresError) -> [UnsafeSetting] {
        try await execute(FindUnsafeSettings())
    }
}

private struct FindUnsafeSettings: Statement {
    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT name, setting FROM pg_settings
        WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'
            OR name = 'default_transaction_isolation' AND setting <> 'read committed'
        ORDER BY name
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> UnsafeSetting {
        try row.read(UnsafeSetting.init)
    }
}
