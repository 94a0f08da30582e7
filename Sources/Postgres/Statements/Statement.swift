internal import CLibPQ

/// One SQL statement: its text, its parameters and the decoding of its rows, in one type.
///
/// The type's properties are the parameters. Each connection prepares a statement on its first execution, under a name
/// derived from the type.
///
/// Comments of hot statements give their cost: the instructions that PostgreSQL executes beyond those of an empty
/// SELECT, counted by `scripts/bench --only statements`.
public protocol Statement: Sendable {
    /// The type of a row of the result; `Void` for a statement without rows.
    associatedtype Row: Sendable

    /// The SQL with its parameters. It cannot depend on a value.
    static var sql: SQL<Self> { get }

    /// True if the statement only reads. The client may then send it again unnoticed.
    ///
    /// Read-only statements of several requests share one sync and one implicit transaction of the server. When one of
    /// them fails, the later ones are sent again. It must be false for a statement that writes, locks, or calls a
    /// function that does.
    static var isReadOnly: Bool { get }

    /// True if the statement only prepares for a request's main statement, like the look-up of a session.
    ///
    /// Statistics name a request by its first statement that is not preliminary.
    static var isPreliminary: Bool { get }

    /// The approximate number of bytes sent with the statement, if its request may share a transaction with other
    /// requests; otherwise nil.
    ///
    /// For short and frequent statements only. Each statement still has its own snapshot, so a key may occur several
    /// times. The statement must not depend on the end of its transaction: no `xmin`, no deferred constraint, no
    /// setting.
    var bytesInGroup: Int? { get }

    /// Appends the parameters in the order of their numbers. Only statements that wrap others implement it.
    func bind(to parameters: inout Parameters)

    /// Reads one row, column by column.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row
}

extension Statement {
    public static var isReadOnly: Bool { false }
    public static var isPreliminary: Bool { false }
    public var bytesInGroup: Int? { nil }
    public func bind(to parameters: inout Parameters) { Self.sql.bind(self, NoContext(), to: &parameters) }
}

extension Statement where Row == Void {
    public static func decode(_ row: inout RowReader) throws(PostgresError) {}
}

extension Statement where Row: PostgresValue {
    public static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.next() }
}

/// A row that several statements select, or that is more than its columns. Columns and decoding are in one type.
public protocol DecodableRow: Sendable {
    /// Reads the columns in the order in which they are selected.
    init(row: inout RowReader) throws(PostgresError)
}

extension Statement where Row: DecodableRow {
    public static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try Row(row: &row) }
}

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

/// The parameters of one statement in binary format. All statements of a client reuse the buffer.
public struct Parameters: ~Copyable {
    private var writer = ByteWriter()
    /// Offset of each value; -1 for NULL.
    private var offsets: [Int] = []
    private var lengths: [CInt] = []
    private var types: [UInt32] = []
    private var formats: [CInt] = []
    private var addresses: [UnsafePointer<CChar>?] = []

    package init() {}

    /// The number of parameters.
    public var count: Int { offsets.count }

    /// The size of all values.
    var byteCount: Int { writer.count }

    /// Appends a value; `nil` becomes NULL of the right type.
    public mutating func append<Value: PostgresValue>(_ value: Value) {
        let start = writer.count
        if value.isNull {
            append(start: -1, type: Value.postgresType)
        } else {
            value.encode(to: &writer)
            append(start: start, type: Value.postgresType)
        }
    }

    /// Appends bytes as `bytea`.
    public mutating func append(bytes: UnsafeRawBufferPointer) {
        let start = writer.count
        writer.write(bytes)
        append(start: start, type: .bytea)
    }

    private mutating func append(start: Int, type: PostgresType) {
        offsets.append(start)
        lengths.append(start < 0 ? 0 : CInt(writer.count - start))
        types.append(type.oid)
    }

    package mutating func removeAll() {
        writer.removeAll()
        offsets.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        types.removeAll(keepingCapacity: true)
    }

    /// Passes the arrays that libpq expects to `body`. They are valid until it returns.
    mutating func withArrays<Result>(
        _ body: (
            _ count: CInt, _ types: UnsafePointer<UInt32>?, _ values: UnsafePointer<UnsafePointer<CChar>?>?,
            _ lengths: UnsafePointer<CInt>?, _ formats: UnsafePointer<CInt>?
        ) -> Result
    ) -> Result {
        addresses.removeAll(keepingCapacity: true)
        for offset in offsets { addresses.append(offset < 0 ? nil : writer.address(at: offset)) }
        while formats.count < offsets.count { formats.append(1) }
        return body(CInt(offsets.count), types, addresses, lengths, formats)
    }
}

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
