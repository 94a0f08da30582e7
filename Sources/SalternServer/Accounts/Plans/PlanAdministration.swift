public import Postgres

/// Lists and changes plans for an operator. A change takes effect with the next request of its accounts, on every node.
public struct PlanAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner, because the server's role cannot change plans.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// Returns all plans, by name.
    public func plans() async throws(PostgresError) -> [AccountPlan] { try await database.execute(FindPlans()) }

    /// Reasons to keep a plan that is to be removed.
    public enum Refusal: Error, Equatable, CustomStringConvertible {
        case noSuchPlan
        case isDefault
        case isInUse(accounts: Bool)

        public var description: String {
            switch self {
            case .noSuchPlan: "there is no such plan; see saltern plan list"
            case .isDefault: "the plan 'default' is for new accounts and cannot be removed"
            case .isInUse(accounts: true):
                "accounts have this plan: list them with saltern account list --plan NAME, and change their plan with "
                    + "saltern account set-plan"
            case .isInUse(accounts: false):
                "unused invites have this plan: list them with saltern invite list, and revoke them with saltern invite "
                    + "revoke"
            }
        }
    }

    /// Returns whether an account has the plan.
    public func hasAccounts(_ name: String, now: Timestamp) async throws(PostgresError) -> Bool {
        try await database.execute(FindPlanUse(name: name, now: now)).first?.hasAccounts ?? false
    }

    /// Removes a plan that no account has and no open invite gives.
    ///
    /// - Throws: ``Refusal``, or a `PostgresError`.
    public func remove(_ name: String, by signature: AuditSignature) async throws {
        guard name != AccountPlan.defaultName else { throw Refusal.isDefault }
        try await database.withTransaction(use: .long(by: nil)) { transaction in
            guard try await !transaction.execute(RemovePlan(name: name)).isEmpty else { throw Refusal.noSuchPlan }
            // A separate statement: behind the lock of the removal it sees all assignments. A registration that began
            // with an invite may commit when that has expired.
            let find = FindPlanUse(name: name, now: signature.now - .seconds(60))
            if let use = try await transaction.execute(find).first, use.hasAccounts || use.hasInvites {
                throw Refusal.isInUse(accounts: use.hasAccounts)
            }
            try await transaction.record(AppendAudit(signature, .planRemoved, detail: "plan \(name)"))
        }
    }

    /// Changes a plan, or creates one from `default` with the changes.
    ///
    /// - Returns: The plan after the change. Nil if the plan `default` is missing.
    public func set(
        _ name: String, _ changes: AccountPlan.Changes, by signature: AuditSignature
    ) async throws -> AccountPlan? {
        try await database.withTransaction { transaction in
            guard let plan = try await transaction.execute(SetPlan(name: name, changes: changes)).first else {
                return nil
            }
            try await transaction.record(
                AppendAudit(signature, .planChanged, detail: "plan \(name): \(changes.description)"))
            return plan
        }
    }
}

/// Finds all plans, by name.
struct FindPlans: Statement {
    typealias Row = AccountPlan

    static let isReadOnly = true
    static let sql: SQL<Self> = "SELECT \(AccountPlan.columns) FROM saltern.plans ORDER BY plan"
}

/// Changes a plan or creates it. Unchanged limits come from the plan itself, and of a new plan from `default`. Requires
/// the rights of the schema's owner.
///
/// It touches no account's row, although a short path decides by the plan (``ShortPath/plan(permits:)``). A write that
/// waits for its account therefore uses the plan from before the wait. That equals a write that came a moment earlier:
/// a plan limits additions, removes nothing, and affects no counter. ``AssignPlan`` does touch the account.
struct SetPlan: Statement {
    typealias Row = AccountPlan

    let name: String
    let changes: AccountPlan.Changes

    static let sql: SQL<Self> = """
        INSERT INTO saltern.plans (\(AccountPlan.columns))
        SELECT \(\.name), coalesce(\(\.changes.items), base.max_items), coalesce(\(\.changes.itemBytes),
            base.max_item_bytes), coalesce(\(\.changes.bytes), base.max_bytes),
            coalesce(\(\.changes.sessions), base.max_sessions), coalesce(\(\.changes.shares), base.max_shares),
            coalesce(\(\.changes.deletedDays), base.deleted_days), coalesce(\(\.changes.vaults), base.max_vaults),
            coalesce(\(\.changes.memberships), base.max_memberships),
            coalesce(\(\.changes.vaultMembers), base.max_vault_members),
            coalesce(\(\.changes.vaultItems), base.vault_items), coalesce(\(\.changes.vaultBytes), base.vault_bytes)
        FROM saltern.plans base
        WHERE base.plan = CASE WHEN EXISTS (SELECT FROM saltern.plans same WHERE same.plan = \(\.name))
            THEN \(\.name) ELSE 'default' END
        ON CONFLICT (plan) DO UPDATE
        SET max_items = excluded.max_items, max_item_bytes = excluded.max_item_bytes, max_bytes = excluded.max_bytes,
            max_sessions = excluded.max_sessions, max_shares = excluded.max_shares,
            deleted_days = excluded.deleted_days, max_vaults = excluded.max_vaults,
            max_memberships = excluded.max_memberships, max_vault_members = excluded.max_vault_members,
            vault_items = excluded.vault_items, vault_bytes = excluded.vault_bytes
        RETURNING \(AccountPlan.columns)
        """
}

/// Finds out if accounts or their vaults have a plan, and if open invites give it.
struct FindPlanUse: Statement {
    let name: String
    let now: Timestamp

    struct Row: Sendable {
        let hasAccounts: Bool
        let hasInvites: Bool
    }

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT EXISTS (SELECT FROM saltern.accounts a WHERE a.plan = \(\.name))
                OR EXISTS (SELECT FROM saltern.vaults v WHERE v.plan = \(\.name)),
            EXISTS (
                SELECT FROM saltern.invites i
                WHERE i.plan = \(\.name) AND i.used_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > \(\.now))
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}

/// Removes a plan, and waits for transactions that assign it (``KeepPlan``). Requires the rights of the schema's owner.
struct RemovePlan: Statement {
    typealias Row = AccountPlan

    let name: String

    static let sql: SQL<Self> = """
        DELETE FROM saltern.plans WHERE plan = \(\.name) RETURNING \(AccountPlan.columns)
        """
}

/// The statements of plans.
extension StatementList {
    static var plans: [any Statement.Type] {
        [
            FindPlans.self, SetPlan.self, FindPlanUse.self, RemovePlan.self, FindAccountOfUserid.self, KeepPlan.self,
            AssignPlan.self,
        ]
    }
}
