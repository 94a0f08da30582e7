internal import CLibPQ

/// One row of a result, read column by column from left to right.
public struct RowReader: ~Copyable {
    /// Borrowed: the result outlives every reader made for it.
    private let result: OpaquePointer
    private let row: CInt
    private var column: CInt = 0
    private let columnCount: CInt

    init(result: OpaquePointer, row: CInt, columnCount: CInt) {
        self.result = result
        self.row = row
        self.columnCount = columnCount
    }

    /// Reads the next column. A column that can be NULL needs an optional type.
    /// - Throws: ``PostgresError/decoding(_:)`` for NULL, for a column of another type, and after the last column.
    public mutating func next<Value: PostgresValue>(_ type: Value.Type = Value.self) throws(PostgresError) -> Value {
        try read { bytes, oid throws(DecodingFailure.Reason) in
            guard Value.postgresType.accepts(oid) else {
                throw .type(expected: Value.postgresType.oid, found: oid)
            }
            guard let value = Value.decode(bytes) else { throw bytes == nil ? .null : .malformed }
            return value
        }
    }

    /// Makes a row from the next columns, in the order of the initializer's parameters.
    ///
    /// For a row that consists of values only, pass its `init`.
    public mutating func read<each Column: PostgresValue, Row>(
        _ make: (repeat each Column) -> Row
    ) throws(PostgresError) -> Row {
        make(repeat try next((each Column).self))
    }

    /// Passes the bytes of the next column, a `bytea`, to `body` without a copy; `nil` for NULL.
    public mutating func nextBytes<Result>(
        _ body: (UnsafeRawBufferPointer?) -> Result
    ) throws(PostgresError) -> Result {
        try read { bytes, oid throws(DecodingFailure.Reason) in
            guard PostgresType.bytea.accepts(oid) else { throw .type(expected: PostgresType.bytea.oid, found: oid) }
            return body(bytes)
        }
    }

    /// Skips the next column.
    public mutating func skip() { column += 1 }

    private mutating func read<Value>(
        _ body: (UnsafeRawBufferPointer?, UInt32) throws(DecodingFailure.Reason) -> Value
    ) throws(PostgresError) -> Value {
        let column = column
        guard column < columnCount else { throw .decoding(DecodingFailure(column: Int(column), reason: .missing)) }
        self.column += 1
        do throws(DecodingFailure.Reason) {
            if PQgetisnull(result, row, column) != 0 { return try body(nil, PQftype(result, column)) }
            let bytes = UnsafeRawBufferPointer(
                start: PQgetvalue(result, row, column), count: Int(PQgetlength(result, row, column)))
            return try body(bytes, PQftype(result, column))
        } catch {
            throw .decoding(DecodingFailure(column: Int(column), reason: error))
        }
    }
}
