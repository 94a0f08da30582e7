import Postgres
import SalternTesting

/// How often a connection has executed each of its prepared statements: the one that reads, and the one that writes.
private protocol CountExecutions: Statement where Row == (name: String, count: Int64) {}

extension CountExecutions {
    static var sql: SQL<Self> { "SELECT name, generic_plans + custom_plans FROM pg_prepared_statements" }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> (name: String, count: Int64) {
        (name: try row.next(), count: try row.next())
    }
}

private struct CountReads: CountExecutions {
    static let isReadOnly = true
}

private struct CountWrites: CountExecutions {}

extension TestApplication {
    /// Executions so far by the statements' type names.
    func executions() async throws -> [String: Int64] {
        let rows = try await execute(CountReads()) + execute(CountWrites())
        let named = rows.map { (String($0.name.split(separator: "_")[1]), $0.count) }
        return Dictionary(named, uniquingKeysWith: +).filter { !["CountReads", "CountWrites"].contains($0.key) }
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
