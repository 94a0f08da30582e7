public import HTTPCore
public import Postgres

/// A named set of limits.
public struct AccountPlan: Sendable, Equatable {
    /// 1 to 32 of `a-z`, `0-9` and `-`.
    public let name: String
    public let limits: Limits

    /// The limits of a plan.
    public struct Limits: Sendable, Equatable {
        public let items: Int64
        /// Sealed bytes of one item, title and body together.
        public let itemBytes: Int64
        /// Sealed bytes of all items.
        public let bytes: Int64
        public let sessions: Int64
        public let shares: Int64
        /// Days for which a deleted item can be restored. 0 disables that.
        public let deletedDays: Int32
        /// Vaults that the account owns.
        public let vaults: Int64
        /// Vaults that the account is a member of, with its own ones.
        public let memberships: Int64
        /// Members of each own vault.
        public let vaultMembers: Int64
        /// Items of each own vault.
        public let vaultItems: Int64
        /// Sealed bytes of all items of each own vault.
        public let vaultBytes: Int64
    }

    /// Changes of limits by an operator. Nil keeps a limit.
    public struct Changes: Sendable {
        public var items: Int64?
        public var itemBytes: Int64?
        public var bytes: Int64?
        public var sessions: Int64?
        public var shares: Int64?
        public var deletedDays: Int32?
        public var vaults: Int64?
        public var memberships: Int64?
        public var vaultMembers: Int64?
        public var vaultItems: Int64?
        public var vaultBytes: Int64?

        public init() {}
    }

    /// The plan of new accounts and the template of new plans.
    public static let defaultName = "default"

    /// Returns true if the name is valid for a plan.
    public static func isName(_ name: String) -> Bool { CollectionName(name) != nil }

    /// Writes the members `plan` and `limits`.
    public func write(to writer: inout JSONWriter) {
        writer.member("plan", name)
        writer.object("limits") { writer in limits.write(to: &writer) }
    }
}

extension AccountPlan.Changes {
    /// Describes the changes that lower a limit. Accounts may already exceed the new limit.
    public func reductions(of limits: AccountPlan.Limits) -> [String] {
        let named: [(String, Int64, Int64?)] = [
            ("items", limits.items, items), ("item bytes", limits.itemBytes, itemBytes), ("bytes", limits.bytes, bytes),
            ("sessions", limits.sessions, sessions), ("shares", limits.shares, shares),
            ("deleted days", Int64(limits.deletedDays), deletedDays.map(Int64.init)),
            ("vaults", limits.vaults, vaults), ("memberships", limits.memberships, memberships),
            ("vault members", limits.vaultMembers, vaultMembers), ("vault items", limits.vaultItems, vaultItems),
            ("vault bytes", limits.vaultBytes, vaultBytes),
        ]
        return named.compactMap { name, before, after in
            after.flatMap { $0 < before ? "\(name) from \(before) to \($0)" : nil }
        }
    }
}

extension AccountPlan.Changes: CustomStringConvertible {
    /// The changed limits as text for the audit log.
    public var description: String {
        let named: [(String, Int64?)] = [
            ("items", items), ("itemBytes", itemBytes), ("bytes", bytes), ("sessions", sessions), ("shares", shares),
            ("deletedDays", deletedDays.map(Int64.init)), ("vaults", vaults), ("memberships", memberships),
            ("vaultMembers", vaultMembers), ("vaultItems", vaultItems), ("vaultBytes", vaultBytes),
        ]
        let words = named.compactMap { name, limit in limit.map { "\(name) \($0)" } }
        return words.isEmpty ? "as it was" : words.joined(separator: ", ")
    }
}

extension AccountPlan.Limits {
    /// Writes a member for each limit.
    func write(to writer: inout JSONWriter) {
        writer.member("items", items)
        writer.member("itemBytes", itemBytes)
        writer.member("bytes", bytes)
        writer.member("sessions", sessions)
        writer.member("shares", shares)
        writer.member("deletedDays", Int(deletedDays))
        writer.member("vaults", vaults)
        writer.member("memberships", memberships)
        writer.member("vaultMembers", vaultMembers)
        writer.member("vaultItems", vaultItems)
        writer.member("vaultBytes", vaultBytes)
    }
}

extension AccountPlan: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `plans`.
    static let columns: SQLFragment = """
        plan, max_items, max_item_bytes, max_bytes, max_sessions, max_shares, deleted_days, max_vaults,
            max_memberships, max_vault_members, vault_items, vault_bytes
        """

    /// Reads the columns of ``columns``.
    public init(row: inout RowReader) throws(PostgresError) {
        name = try row.next()
        limits = try Limits(row: &row)
    }
}

extension AccountPlan.Limits: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `plans` as `p`.
    static let columns: SQLFragment = """
        p.max_items, p.max_item_bytes, p.max_bytes, p.max_sessions, p.max_shares, p.deleted_days,
            p.max_vaults, p.max_memberships, p.max_vault_members, p.vault_items, p.vault_bytes
        """

    public init(row: inout RowReader) throws(PostgresError) {
        items = try row.next()
        itemBytes = try row.next()
        bytes = try row.next()
        sessions = try row.next()
        shares = try row.next()
        deletedDays = try row.next()
        vaults = try row.next()
        memberships = try row.next()
        vaultMembers = try row.next()
        vaultItems = try row.next()
        vaultBytes = try row.next()
    }
}

/// Prevents the removal of a plan until the transaction ends, before accounts or invites receive it. Returns no row if
/// there is no such plan. Requires the rights of the schema's owner.
struct KeepPlan: Statement {
    typealias Row = String

    let name: String

    static let sql: SQL<Self> = "SELECT p.plan FROM saltern.plans p WHERE p.plan = \(\.name) FOR KEY SHARE"
}
