/// One SQL statement: its text with its parameters, and the decoding of its rows, in one type.
///
/// The type's properties are the parameters. A statement is prepared once a connection, under a name made from the type,
/// on its way to its first execution.
///
/// The comments of hot statements say what they cost: the instructions that PostgreSQL executes for one beyond a SELECT of
/// nothing, as `scripts/bench --only statements` counts them.
public protocol Statement: Sendable {
    /// What one row of the result means; `Void` for a statement that returns none.
    associatedtype Row: Sendable

    /// The SQL and its parameters; it cannot depend on a value.
    static var sql: SQL<Self> { get }

    /// Whether the statement only reads, and may therefore be sent again by the client without anybody noticing.
    ///
    /// Read-only statements of several requests share one sync and one implicit transaction of the server. When
    /// one of them fails, the ones behind it are sent again. Never say `true` of a statement that writes, locks
    /// or calls a function that does.
    static var isReadOnly: Bool { get }

    /// Whether it only precedes the statement that a request is about, as the look-up of a session does. Statistics name a
    /// request by its first statement that is more than that.
    static var isPreliminary: Bool { get }

    /// About how many bytes are sent with the statement, when requests of such statements may share a transaction with
    /// those of others; nil when they may not.
    ///
    /// For what is short and frequent only. Each statement has a snapshot of its own there too, so one key may come
    /// several times. It must not notice where a transaction ends: no `xmin`, no deferred constraint, no setting.
    var bytesInGroup: Int? { get }

    /// Appends the parameters in the order of their numbers. Written by hand by statements that wrap others only.
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

/// A row that several statements select, or that is more than its columns: the columns and their decoding stand together.
public protocol DecodableRow: Sendable {
    /// Reads the columns in the order in which they are selected.
    init(row: inout RowReader) throws(PostgresError)
}

extension Statement where Row: DecodableRow {
    public static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try Row(row: &row) }
}
