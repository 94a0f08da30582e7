public import Postgres

/// Finds the service of a credential.
struct FindService: Statement {
    typealias Row = Service

    let hash: ServiceHash

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT s.service, s.audience, s.created_at FROM saltern.services s WHERE s.token_hash = \(\.hash)"
}

/// Finds all services, by name.
struct FindServices: Statement {
    typealias Row = Service

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT s.service, s.audience, s.created_at FROM saltern.services s ORDER BY s.service"
}

/// Stores a service. Returns no row if the name is taken. Requires the rights of the schema's owner.
struct InsertService: Statement {
    typealias Row = ServiceName

    let hash: ServiceHash
    let name: ServiceName
    let audience: AudienceName
    let now: Timestamp

    static let sql: SQL<Self> = """
        INSERT INTO saltern.services (token_hash, service, audience, created_at)
        VALUES (\(\.hash), \(\.name), \(\.audience), \(\.now))
        ON CONFLICT (service) DO NOTHING
        RETURNING service
        """
}

/// Removes a service. Returns no row if the name is unknown. Requires the rights of the schema's owner.
struct RemoveService: Statement {
    typealias Row = AudienceName

    let name: ServiceName

    static let sql: SQL<Self> = "DELETE FROM saltern.services WHERE service = \(\.name) RETURNING audience"
}

extension Service: DecodableRow {
    public init(row: inout RowReader) throws(PostgresError) {
        name = try row.next()
        audience = try row.next()
        createdAt = try row.next()
    }
}
