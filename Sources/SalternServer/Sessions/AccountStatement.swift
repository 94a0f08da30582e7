internal import Postgres

/// A statement that reads what belongs to the caller's account. The account's identifier is $1.
///
/// It is sent together with the look-up of the session, so it must be harmless when there is none: its rows are
/// dropped then.
protocol AccountRead: Sendable {
    associatedtype Row: Sendable

    /// The SQL, with the caller's account as $1.
    static var sql: String { get }

    /// Appends $2 and the following.
    func bind(to parameters: inout Parameters)

    /// Reads one row.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row
}

extension AccountRead {
    func bind(to parameters: inout Parameters) {}
}

/// A statement that changes what belongs to the caller's account. $1 to $4 are the ``Caller``.
///
/// It is executed also when the look-up of the session found none, so its SQL must contain
/// ``Caller/hasLiveSession`` and change nothing when that is false.
protocol AccountWrite: Sendable {
    associatedtype Row: Sendable

    /// The SQL, with the caller as $1 to $4.
    static var sql: String { get }

    /// Whether the account's row is locked before the statement takes its snapshot. Needed by whoever computes the
    /// account's counters.
    static var locksAccount: Bool { get }

    /// Appends $5 and the following.
    func bind(to parameters: inout Parameters)

    /// Reads one row.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row
}

extension AccountWrite {
    func bind(to parameters: inout Parameters) {}
}

/// An ``AccountRead`` with the account that only ``Authorization`` can supply.
struct Owned<Read: AccountRead>: Statement {
    let accountID: AccountID
    let read: Read

    static var sql: String { Read.sql }
    static var isReadOnly: Bool { true }

    func bind(to parameters: inout Parameters) {
        parameters.append(accountID)
        read.bind(to: &parameters)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Read.Row { try Read.decode(&row) }
}

/// An ``AccountWrite`` with the caller that only ``Authorization`` can supply.
struct Guarded<Write: AccountWrite>: Statement {
    let caller: Caller
    let write: Write

    static var sql: String { Write.sql }

    func bind(to parameters: inout Parameters) {
        caller.bind(to: &parameters)
        write.bind(to: &parameters)
    }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Write.Row { try Write.decode(&row) }
}
