internal import HTTPCore
public import Postgres

/// A statement that reads rows of the caller's account.
///
/// It is sent together with the check of the session. Without a live session its rows are discarded, so it must be
/// harmless.
protocol AccountRead: Sendable {
    associatedtype Row: Sendable

    /// The SQL and its parameters.
    static var sql: AccountSQL<Self> { get }

    /// Reads one row.
    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row
}

/// The SQL of an ``AccountRead``, with the parameter `\(.account)`.
typealias AccountSQL<Root> = SQLTemplate<Root, AccountID>

extension AccountID: SQLContext {
    /// The parameters that a statement about an account receives.
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

/// A statement that changes rows of the caller's account.
///
/// The account's row is locked before the statement takes its snapshot, so it sees the previous writer's changes. A
/// ``ShortPath`` takes the lock itself.
///
/// It also runs if the check of the session finds none. Its SQL must therefore contain ``Caller/isLiveSession`` and
/// change nothing if that is false.
protocol AccountWrite: Sendable {
    associatedtype Row: Sendable

    /// The SQL and its parameters.
    static var sql: CallerSQL<Self> { get }

    /// True if it is sent on a dedicated connection: statements that take long or use up a code.
    static var needsLease: Bool { get }

    /// True if it may share a transaction with other accounts' writes (`Statement.bytesInGroup`).
    static var joinsGroups: Bool { get }

    /// Sealed bytes in its parameters. With many it is also sent on a dedicated connection.
    var sealedByteCount: Int { get }

    /// True if this statement is sent on a dedicated connection.
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

/// Identifies the owner of items: an account or a vault.
typealias OwnerID = Identifier<ItemOwner>

/// The entity of ``OwnerID``.
enum ItemOwner {}

extension OwnerID {
    init(_ account: AccountID) { self.init(account.uuid) }
}

/// A statement that reads rows of the items' owner.
protocol ItemRead: AccountRead {}

/// A statement that changes rows of the items' owner.
protocol ItemWrite: AccountWrite {
    /// The SQL for members of a vault, with the names of an account's tables (``VaultNames``).
    static var vaultSQL: CallerSQL<Self> { get }

    /// The key of the sealed bytes.
    var sealedKey: SealedKey { get }

    /// The items that it deletes.
    var discarded: [ItemID] { get }
}

extension ItemWrite {
    var sealedKey: SealedKey { .none }
    var discarded: [ItemID] { [] }
}

/// A statement about rows of the items' owner in a transaction that has locked the owner's row.
protocol ItemStep: Statement {
    var owner: OwnerID { get }
}

/// Combines an ``AccountRead`` with the account, which only ``Authorization`` supplies.
struct Owned<Read: AccountRead>: Statement {
    let accountID: AccountID
    let read: Read

    static var sql: SQL<Self> { Read.sql.lifted(\.read, \.accountID) }
    static var isReadOnly: Bool { true }

    func bind(to parameters: inout Parameters) { Read.sql.bind(read, accountID, to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Read.Row { try Read.decode(&row) }
}

/// Combines an ``AccountWrite`` with the caller, which only ``Authorization`` supplies.
struct Guarded<Write: AccountWrite>: Statement {
    let caller: Caller
    let write: Write

    static var sql: SQL<Self> { Write.sql.lifted(\.write, \.caller) }
    var bytesInGroup: Int? { Write.joinsGroups ? write.sealedByteCount + 256 : nil }

    func bind(to parameters: inout Parameters) { Write.sql.bind(write, caller, to: &parameters) }

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Write.Row { try Write.decode(&row) }
}

/// Reads an account's rows for the duration of a streamed reply. Each read is a transaction of its own and checks the
/// session again at its own time.
struct AccountReader: Sendable {
    let session: SessionKey
    let database: PostgresClient
    let clock: any WallClock
    let policy: SessionPolicy

    /// Reads rows.
    ///
    /// - Throws: `ResponseStreamEnded` if the session has ended, or a `PostgresError`.
    func read<Read: AccountRead>(_ read: Read) async throws -> [Read.Row] {
        let caller = Caller(session, now: clock.now, policy: policy)
        let (sessions, rows) = try await database.execute(
            Authenticate(caller: caller), Owned(accountID: caller.accountID, read: read))
        guard !sessions.isEmpty else { throw ResponseStreamEnded() }
        return rows
    }
}

/// SQL for the two counters of an account: item changes and keyring revisions.
///
/// No number is issued twice, even after a database rollback: the installation's base then moves above all numbers that
/// the lost period can have issued. The statement that takes a number reads the base, so no node counts from memory.
enum AccountCounter {
    /// A lower bound: all further numbers are above it.
    static let base: SQLFragment = "(SELECT b.revision_base FROM saltern.installation b WHERE b.singleton)"

    /// The latest number of a counter, or the base if that is higher. Clients use it as the current position.
    static func head(_ counter: SQLFragment) -> SQLFragment { "greatest(\(counter), \(base))" }

    /// The value of a counter after `count` further numbers are taken.
    static func next(_ counter: SQLFragment, by count: SQLFragment = "1") -> SQLFragment {
        "\(head(counter)) + \(count)"
    }
}

/// SQL for the size of rows with sealed bytes.
enum SealedSize {
    /// The sealed bytes of a row of an alias: title and body together. PostgreSQL stores the lengths of such columns
    /// apart and does not read the values. 0 for a tombstone or a missing row.
    static func bytes(of alias: SQLFragment) -> SQLFragment {
        "(coalesce(octet_length(\(alias).body), 0) + coalesce(octet_length(\(alias).title), 0))::bigint"
    }
}
