import Postgres
import SalternTesting

/// What is stored of rotations and recoveries, of all accounts.
struct StoredRows: Statement {
    struct Row: Sendable {
        let rotations: Int64
        let stagedItems: Int64
        let restrictedSessions: Int64
        let recoveries: Int64
        /// The kinds of the security events but for failures and ends of sessions, in the order of their names.
        let events: String
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT (SELECT count(*) FROM saltern.rotations), (SELECT count(*) FROM saltern.rotation_items),
            (SELECT count(*) FROM saltern.sessions WHERE restricted), (SELECT count(*) FROM saltern.recoveries),
            (SELECT coalesce(string_agg(kind, ' ' ORDER BY kind), '') FROM saltern.security_events
                WHERE kind NOT LIKE 'failed%' AND kind <> 'session_ended')
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

extension TestApplication {
    func stored() async throws -> StoredRows.Row {
        guard let row = try await execute(StoredRows()).first else {
            throw UnexpectedReply(description: "nothing is stored")
        }
        return row
    }
}
