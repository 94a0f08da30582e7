internal import Postgres

/// Names a row that is due, and whose it is.
struct DueRow<ID: Sendable>: Sendable {
    let owner: AccountID
    let id: ID
    /// Its sealed bytes; 0 of what is short.
    var bytes: Int64 = 0
}

extension DueRow: DecodableRow where ID: PostgresValue {
    init(row: inout RowReader) throws(PostgresError) {
        owner = try row.next()
        id = try row.next()
    }
}

extension DueRow {
    /// Returns the identifiers of rows, divided so that no part has more sealed bytes than `limit`, but for a single row.
    static func slices(of rows: [Self], _ limit: Int64) -> [[ID]] {
        var slices: [[ID]] = []
        var left: Int64 = 0
        for row in rows {
            if row.bytes > left || slices.isEmpty {
                slices.append([])
                left = limit
            }
            slices[slices.count - 1].append(row.id)
            left -= row.bytes
        }
        return slices
    }
}
