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
