public import Postgres

/// One line of the list of accounts.
public struct AccountSummary: Sendable {
    public let id: AccountID
    public let userid: String
    public let plan: String
    public let items: Int64
    public let bytes: Int64
    public let createdAt: Timestamp
    public let lockedAt: Timestamp?
    /// The last use of a session that is still stored.
    public let lastUsedAt: Timestamp?
}

/// The condition for accounts in a list.
public struct AccountFilter: Sendable {
    public var useridPrefix = ""
    /// Text that the userid contains. Nil for any userid.
    public var useridPart: String?
    public var plan: String?
    public var isLocked = false

    public init() {}

    /// Returns the canonical form of a part of a userid if it differs: no userid then contains the part itself.
    public static func canonicalForm(of part: String) -> String? {
        let form = Userid.canonicalForm(of: part)
        return form.utf8.elementsEqual(part.utf8) ? nil : form
    }

    /// True if the listing reads accounts that it may omit.
    var isSearch: Bool { plan != nil || useridPart != nil }

    /// The upper bound of userids with the prefix: no userid has this character.
    var end: String { useridPrefix + "\u{10FFFF}" }
}

/// Lists accounts in the order of their userids, in slices, so that memory stays small.
public struct AccountListing {
    private let database: PostgresClient
    private let sliceSize: Int

    /// - Parameters:
    ///   - database: Connects as the schema's owner.
    ///   - sliceSize: The number of accounts that one statement reads.
    public init(database: PostgresClient, sliceSize: Int = 1_000) {
        self.database = database
        self.sliceSize = sliceSize
    }

    /// Passes the accounts to `body`, slice by slice.
    ///
    /// - Parameters:
    ///   - filter: The condition.
    ///   - after: Only userids behind this one.
    ///   - limit: Maximum number of accounts.
    ///   - body: Receives a slice, never an empty one.
    /// - Returns: The last userid if the limit was reached, to continue behind it. Nil at the end.
    /// - Throws: A `PostgresError`.
    public func list(
        _ filter: AccountFilter, after: String, limit: Int, _ body: ([AccountSummary]) -> Void
    ) async throws(PostgresError) -> String? {
        var place = after
        var remaining = limit
        while true {
            let slice = try await slice(filter, after: place, remaining: remaining)
            let accounts = slice.accounts.prefix(remaining)
            if !accounts.isEmpty { body(Array(accounts)) }
            remaining -= accounts.count
            if remaining <= 0 { return accounts.last?.userid }
            guard let last = slice.last else { return nil }
            place = last
        }
    }

    private func slice(
        _ filter: AccountFilter, after: String, remaining: Int
    ) async throws(PostgresError) -> (accounts: [AccountSummary], last: String?) {
        if filter.isLocked {
            // Locked accounts are few and have an index of their own.
            let accounts = try await database.execute(
                FindLockedAccounts(filter: filter, after: after, limit: Int64(min(sliceSize, remaining))))
            return (accounts, accounts.last?.userid)
        }
        let limit = filter.isSearch ? sliceSize : min(sliceSize, remaining)
        let logins = try await database.execute(FindLogins(filter: filter, after: after, limit: Int64(limit)))
        if logins.isEmpty { return ([], nil) }
        let accounts = try await database.execute(
            SummarizeAccounts(accountIDs: logins.map(\.accountID), filter: filter))
        return (accounts, logins.last?.userid)
    }
}

extension AccountSummary: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `accounts` as `a`.
    fileprivate static let columns: SQLFragment = """
        a.account_id, a.userid, a.plan, a.item_count, a.item_bytes, a.created_at, a.locked_at,
            (SELECT max(s.last_used_at) FROM saltern.sessions s WHERE s.account_id = a.account_id)
        """

    public init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        userid = try row.next()
        plan = try row.next()
        items = try row.next()
        bytes = try row.next()
        createdAt = try row.next()
        lockedAt = try row.next()
        lastUsedAt = try row.next()
    }
}

/// Finds userids in their order, behind `after`.
struct FindLogins: Statement {
    let filter: AccountFilter
    let after: String
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT l.userid, l.account_id FROM saltern.logins l
        WHERE l.userid > \(\.after) AND l.userid >= \(\.filter.useridPrefix) AND l.userid < \(\.filter.end)
        ORDER BY l.userid LIMIT \(\.limit)
        """

    static func decode(
        _ row: inout RowReader
    ) throws(PostgresError) -> (userid: String, accountID: AccountID) {
        (userid: try row.next(), accountID: try row.next())
    }
}

/// Summarises accounts by their ids, in the order of their userids, and omits those outside the filter's plan and part
/// of a userid.
struct SummarizeAccounts: Statement {
    typealias Row = AccountSummary

    let accountIDs: [AccountID]
    let filter: AccountFilter

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AccountSummary.columns)
        FROM saltern.accounts a
        WHERE a.account_id = ANY(\(\.accountIDs)) AND (\(\.filter.plan)::text IS NULL OR a.plan = \(\.filter.plan))
            AND (\(\.filter.useridPart)::text IS NULL OR strpos(a.userid, \(\.filter.useridPart)) > 0)
        ORDER BY a.userid
        """
}

/// Finds locked accounts in the order of their userids, behind `after`, by the index `accounts_locked`.
struct FindLockedAccounts: Statement {
    typealias Row = AccountSummary

    let filter: AccountFilter
    let after: String
    let limit: Int64

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT \(AccountSummary.columns)
        FROM saltern.accounts a
        WHERE a.locked_at IS NOT NULL AND a.userid > \(\.after) AND a.userid >= \(\.filter.useridPrefix)
            AND a.userid < \(\.filter.end)
            AND (\(\.filter.plan)::text IS NULL OR a.plan = \(\.filter.plan))
            AND (\(\.filter.useridPart)::text IS NULL OR strpos(a.userid, \(\.filter.useridPart)) > 0)
        ORDER BY a.userid LIMIT \(\.limit)
        """
}
