public import Postgres

/// A statement that reads what belongs to the caller's account.
///
/// It is sent together with the look-up of the session, so it must be harmless when there is none: its rows are
/// dropped then.
protocol AccountRead: Sendable {
    associatedtype Row: Sendable

    /// The SQL and its parameters.
    static var sql: AccountSQL<Self> { get }

    /// Reads one row.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row
}

/// The SQL of an ``AccountRead``: it has `\(.account)`.
typealias AccountSQL<Root> = SQLTemplate<Root, AccountID>

extension AccountID: SQLContext {
    /// What a statement about an account is supplied with.
    public enum Parameter: Sendable {
        case account
    }

    public func append(_ parameter: Parameter, to parameters: inout Parameters) { parameters.append(self) }
}

extension AccountRead where Row: PostgresValue {
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.next() }
}

extension AccountRead where Row: DecodableRow {
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try Row(row: &row) }
}

/// A statement that changes what belongs to the caller's account.
///
/// The account's row is locked before the statement takes its snapshot, so it sees what the writer before it left; a
/// ``ShortPath`` locks it by itself.
///
/// It is executed also when the look-up of the session found none, so its SQL must contain
/// ``Caller/isLiveSession`` and change nothing when that is false.
protocol AccountWrite: Sendable {
    associatedtype Row: Sendable

    /// The SQL and its parameters.
    static var sql: CallerSQL<Self> { get }

    /// Whether it is sent on a connection of its own: what takes long, and what uses up a code.
    static var needsLease: Bool { get }

    /// Whether it may share a transaction with other accounts' (`Statement.bytesInGroup`).
    static var joinsGroups: Bool { get }

    /// The sealed bytes that it carries. With many it is sent on a connection of its own as well.
    var sealedByteCount: Int { get }

    /// Whether this one is sent on a connection of its own.
    var isLong: Bool { get }

    /// Reads one row.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row
}

extension AccountWrite {
    var isLong: Bool { Self.needsLease || sealedByteCount > Authorization.sharedByteLimit }
    static var needsLease: Bool { false }
    static var joinsGroups: Bool { false }
    var sealedByteCount: Int { 0 }
}

extension AccountWrite where Row: PostgresValue {
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.next() }
}

extension AccountWrite where Row: DecodableRow {
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try Row(row: &row) }
}

/// An ``AccountRead`` with the account that only ``Authorization`` can supply.
struct Owned<Read: AccountRead>: Statement {
    let accountID: AccountID
    let read: Read

    static var sql: SQL<Self> { Read.sql.lifted(\.read, \.accountID) }
    static var isReadOnly: Bool { true }

    func bind(to parameters: inout Parameters) { Read.sql.bind(read, accountID, to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Read.Row { try Read.decode(&row) }
}

/// An ``AccountWrite`` with the caller that only ``Authorization`` can supply.
struct Guarded<Write: AccountWrite>: Statement {
    let caller: Caller
    let write: Write

    static var sql: SQL<Self> { Write.sql.lifted(\.write, \.caller) }
    var bytesInGroup: Int? { Write.joinsGroups ? write.sealedByteCount + 256 : nil }

    func bind(to parameters: inout Parameters) { Write.sql.bind(write, caller, to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Write.Row { try Write.decode(&row) }
}
