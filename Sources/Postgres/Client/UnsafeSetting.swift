/// A setting of the database that weakens commits or isolation.
public struct UnsafeSetting: Sendable, Hashable, CustomStringConvertible {
    /// The setting's name.
    public let name: String
    /// The setting's value for this client's role.
    public let value: String

    public var description: String {
        switch name {
        case "default_transaction_isolation": "\(name) is '\(value)' and must be 'read committed'"
        case "default_transaction_read_only": "\(name) is \(value): nothing can be written"
        case "synchronous_commit" where value != "off":
            "\(name) is \(value): a failure of the primary loses committed data"
        case "client_min_messages": "\(name) is \(value): a commit that is on no standby is not detected"
        default: "\(name) is \(value): committed data can be lost"
        }
    }
}

extension PostgresClient {
    /// Returns the settings that can lose acknowledged commits or change the rows that a statement sees, as they apply
    /// to this client's role.
    /// - Parameter outlivingPrimary: True if commits have to survive the loss of the primary.
    public func unsafeSettings(outlivingPrimary: Bool = false) async throws(PostgresError) -> [UnsafeSetting] {
        try await execute(FindUnsafeSettings(isOutlivingPrimary: outlivingPrimary))
    }
}

private struct FindUnsafeSettings: Statement {
    let isOutlivingPrimary: Bool

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT name, setting FROM pg_settings
        WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'
            OR name = 'synchronous_commit' AND setting IN ('local', 'remote_write') AND \(\.isOutlivingPrimary)
            OR name = 'default_transaction_isolation' AND setting <> 'read committed'
            OR name = 'default_transaction_read_only' AND setting = 'on'
            OR name = 'client_min_messages' AND setting IN ('error', 'fatal', 'panic')
        ORDER BY name
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> UnsafeSetting {
        try row.read(UnsafeSetting.init)
    }
}
