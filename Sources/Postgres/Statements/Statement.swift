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
