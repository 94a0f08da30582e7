import HTTPCore
import SalternServer

struct ListPlans: Command {
    static let words = ["plan", "list"]
    static let summary = "list the plans and their limits"
    static let help = """
          --json           one object, for scripts

        \(DatabaseCommand.ownerHelp)
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let plans = try await DatabaseCommand.asOwner(console) { try await PlanAdministration(database: $0).plans() }
        if asJSON {
            var writer = JSONWriter()
            writer.object { writer in
                writer.array("plans") { writer in
                    for plan in plans { writer.object { writer in plan.write(to: &writer) } }
                }
            }
            console.print(String(decoding: writer.finish(), as: UTF8.self))
        } else {
            console.write(PlanTable.text(plans))
        }
    }
}

struct SetPlanLimits: Command {
    static let words = ["plan", "set"]
    static let summary = "change a plan's limits, or make a new plan"
    static let help = """
        usage: saltern plan set NAME [OPTIONS]

          --items N         items that are not deleted
          --item-bytes N    sealed bytes of one item, title and body together
          --bytes N         sealed bytes of all items
          --sessions N      sessions that are live
          --shares N        for a later version
          --deleted-days N  how long a deleted item can be restored; 0 for not at all
          --json            prints the plan as an object, for scripts

        What is not named stays as it is; a new plan starts as a copy of 'default'. Accounts are held to it from their
        next request on, and lose nothing: who has more than the plan allows can still read, shrink and delete.

        \(DatabaseCommand.ownerHelp)
        """

    private let name: String
    private let changes: AccountPlan.Changes
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        var changes = AccountPlan.Changes()
        changes.items = try Self.number("--items", from: 0, &arguments)
        changes.itemBytes = try Self.number("--item-bytes", from: 0, &arguments)
        changes.bytes = try Self.number("--bytes", from: 0, &arguments)
        changes.sessions = try Self.number("--sessions", from: 1, &arguments)
        changes.shares = try Self.number("--shares", from: 0, &arguments)
        changes.deletedDays = try Self.number("--deleted-days", from: 0, to: 3_650, &arguments).map { Int32($0) }
        self.changes = changes
        name = try arguments.word("the plan's name")
        guard AccountPlan.isName(name) else {
            throw UsageError(message: "a plan's name has 1 to 32 of the characters a-z, 0-9 and -")
        }
    }

    private static func number(
        _ option: String, from least: Int64, to most: Int64 = 1 << 50, _ arguments: inout Arguments
    ) throws(UsageError) -> Int64? {
        guard let text = try arguments.option(option) else { return nil }
        guard let number = Int64(text), (least...most).contains(number) else {
            throw UsageError(message: "\(option) must be a whole number from \(least) to \(most)")
        }
        return number
    }

    func run(_ console: Console) async throws {
        let plan = try await DatabaseCommand.asOwner(console) { [name, changes] in
            try await PlanAdministration(database: $0).set(name, changes)
        }
        guard let plan else { throw CommandFailure("there is no plan 'default' to start from") }
        if asJSON {
            var writer = JSONWriter()
            writer.object { writer in plan.write(to: &writer) }
            console.print(String(decoding: writer.finish(), as: UTF8.self))
        } else {
            console.write(PlanTable.text([plan]))
        }
    }
}

struct SetAccountPlan: Command {
    static let words = ["account", "set-plan"]
    static let summary = "give an account another plan"
    static let help = """
        usage: saltern account set-plan USERID PLAN

        \(DatabaseCommand.ownerHelp)
        """

    private let userid: String
    private let plan: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        userid = try arguments.word("the userid")
        plan = try arguments.word("the plan's name")
    }

    func run(_ console: Console) async throws {
        let account = try await DatabaseCommand.asOwner(console) { [userid, plan] in
            try await PlanAdministration(database: $0).assign(plan, toUserid: userid)
        }
        console.print("account \(account) has plan \(plan)")
    }
}

/// Plans as people read them.
private enum PlanTable {
    static func text(_ plans: [AccountPlan]) -> String {
        let head = ["plan", "items", "item bytes", "bytes", "sessions", "shares", "deleted days"]
        let rows =
            [head]
            + plans.map { plan in
                let limits = plan.limits
                return [
                    plan.name, "\(limits.items)", "\(limits.itemBytes)", "\(limits.bytes)", "\(limits.sessions)",
                    "\(limits.shares)", "\(limits.deletedDays)",
                ]
            }
        let widths = head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                return column == 0 ? cell + padding : padding + cell
            }
            return cells.joined(separator: "  ") + "\n"
        }.joined()
    }
}
