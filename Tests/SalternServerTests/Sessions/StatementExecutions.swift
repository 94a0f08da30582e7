import Postgres
import SalternTesting

/// How often this connection has executed each of its prepared statements.
private struct CountExecutions: Statement {
    static let isReadOnly = true
    static let sql = "SELECT name, generic_plans + custom_plans FROM pg_prepared_statements"

    static func decode(_ row: inout RowReader) throws(PostgresError) -> (name: String, count: Int64) {
        (name: try row.next(), count: try row.next())
    }
}

extension TestApplication {
    /// Executions so far by the statements' type names.
    func executions() async throws -> [String: Int64] {
        let rows = try await execute(CountExecutions())
        let named = rows.map { (String($0.name.drop { $0 != "_" }.dropFirst()), $0.count) }
        return Dictionary(named, uniquingKeysWith: +).filter { $0.key != "CountExecutions" }
    }
}

extension [String: Int64] {
    func difference(from earlier: [String: Int64]) -> [String: Int64] {
        reduce(into: [:]) { result, entry in
            let more = entry.value - (earlier[entry.key] ?? 0)
            if more != 0 { result[entry.key] = more }
        }
    }
}
