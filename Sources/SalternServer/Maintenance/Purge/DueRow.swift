internal import Postgres

/// Identifies a row that is due and its owner.
struct DueRow<ID: Sendable>: Sendable {
    let owner: AccountID
    let id: ID
    /// The row's sealed bytes, 0 for short rows.
    var bytes: Int64 = 0
}

extension DueRow: DecodableRow where ID: PostgresValue {
    init(row: inout RowReader) throws(PostgresError) {
        owner = try row.next()
        id = try row.next()
    }
}

extension DueRow {
    /// Divides rows into slices of at most `limit` sealed bytes, except for a single longer row. Returns their ids.
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
