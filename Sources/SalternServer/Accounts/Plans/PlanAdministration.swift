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
