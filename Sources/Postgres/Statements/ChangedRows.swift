internal import CLibPQ

/// The number of rows that a statement has changed. For statements that cannot return rows: `MERGE` returns rows from
/// PostgreSQL 17 on.
public struct ChangedRows: DecodableRow {
    public let count: Int

    init(result: OpaquePointer) { count = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// Throws: such a statement has no rows to read.
    public init(row: inout RowReader) throws(PostgresError) {
        throw .configuration("a statement that reports the number of changed rows has returned a row")
    }
}
