public import Postgres

/// What an operator does with plans. Changing one takes effect with the next request of its accounts, on every node.
public struct PlanAdministration {
    private let database: PostgresClient

    /// - Parameter database: Connects as the schema's owner: the server's role cannot change plans.
    public init(database: PostgresClient) {
        self.database = database
    }

    /// Why an account was not given a plan.
    public enum Refusal: Error, CustomStringConvertible {
        case noSuchUserid
        case noSuchPlan

        public var description: String {
            switch self {
            case .noSuchUserid: "nobody has this userid"
            case .noSuchPlan: "there is no such plan; see saltern plan list"
            }
        }
    }

    /// Every plan, by name.
    public func plans() async throws(PostgresError) -> [AccountPlan] { try await database.execute(FindPlans()) }

    /// Changes a plan, or makes a new one that is like `default` but for the changes.
    /// - Returns: The plan as it is now; nil when there is no plan `default` to start from.
    public func set(_ name: String, _ changes: AccountPlan.Changes) async throws(PostgresError) -> AccountPlan? {
        try await database.execute(SetPlan(name: name, changes: changes)).first
    }

    /// Gives the account of a userid a plan.
    /// - Throws: ``Refusal`` or a `PostgresError`.
    public func assign(_ plan: String, toUserid userid: String) async throws -> AccountID {
        guard let account = try await database.execute(FindAccountOfUserid(userid: userid)).first else {
            throw Refusal.noSuchUserid
        }
        guard try await database.execute(AssignPlan(accountID: account, plan: plan)).first != nil else {
            throw Refusal.noSuchPlan
        }
        return account
    }
}
