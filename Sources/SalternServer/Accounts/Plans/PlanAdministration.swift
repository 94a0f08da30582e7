public import Postgres

/// What an operator does with plans. Changing one takes effect with the next request of its accounts, on every node.
public struct PlanAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner: the server's role cannot change plans.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// Every plan, by name.
    public func plans() async throws(PostgresError) -> [AccountPlan] { try await database.execute(FindPlans()) }

    /// Why a plan is not removed.
    public enum Refusal: Error, Equatable, CustomStringConvertible {
        case noSuchPlan
        case isDefault
        case isInUse(accounts: Bool)

        public var description: String {
            switch self {
            case .noSuchPlan: "there is no such plan; see saltern plan list"
            case .isDefault: "the plan 'default' is that of new accounts, and stays"
            case .isInUse(accounts: true):
                "accounts have this plan: saltern account list --plan NAME lists them, saltern account set-plan gives another "
                    + "one"
            case .isInUse(accounts: false):
                "invites that can still be used give this plan: saltern invite list lists them, saltern invite revoke takes "
                    + "one back"
            }
        }
    }

    /// Returns whether an account has the plan.
    public func hasAccounts(_ name: String, now: Timestamp) async throws(PostgresError) -> Bool {
        try await database.execute(FindPlanUse(name: name, now: now)).first?.hasAccounts ?? false
    }

    /// Removes a plan that no account has and no invite gives.
    /// - Throws: ``Refusal``, or a `PostgresError`.
    public func remove(_ name: String, by signature: AuditSignature) async throws {
        guard name != AccountPlan.defaultName else { throw Refusal.isDefault }
        guard try await plans().contains(where: { $0.name == name }) else { throw Refusal.noSuchPlan }
        try await requireUnused(name, now: signature.now)
        let removed = try await database.withTransaction { transaction in
            guard let plan = try await transaction.execute(RemovePlan(name: name)).first else {
                throw Refusal.noSuchPlan
            }
            try await transaction.record(AppendAudit(signature, .planRemoved, detail: "plan \(name)"))
            return plan
        }
        // An account may have been given the plan at the same moment, and cannot do without it.
        do {
            try await requireUnused(name, now: signature.now)
        } catch {
            _ = try await set(name, AccountPlan.Changes(removed.limits), by: signature)
            throw error
        }
    }

    private func requireUnused(_ name: String, now: Timestamp) async throws {
        guard let use = try await database.execute(FindPlanUse(name: name, now: now)).first else { return }
        if use.hasAccounts || use.hasInvites { throw Refusal.isInUse(accounts: use.hasAccounts) }
    }

    /// Changes a plan, or makes a new one that is like `default` but for the changes.
    /// - Returns: The plan as it is now; nil when there is no plan `default` to start from.
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
