import CommandLineKit
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
            console.printJSON { writer in
                writer.array("plans") { writer in
                    for plan in plans { writer.object { writer in plan.write(to: &writer) } }
                }
            }
        } else {
            var table = Table(plans)
            console.write(table.takeText())
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
          --shares N        share links that have not ended
          --deleted-days N  how long a deleted item can be restored; 0 for not at all
          --json            prints the plan as an object, for scripts
        \(AdminActor.help)

        What is not named stays as it is; a new plan starts as a copy of 'default'. Accounts are held to it from their
        next request on, and lose nothing: who has more than the plan allows can still read, shrink and delete.

        \(DatabaseCommand.ownerHelp)
        """

    private let name: String
    private let changes: AccountPlan.Changes
    private let actor: AdminActor
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        actor = try AdminActor(&arguments)
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
        try arguments.integer(option, in: Int(least)...Int(most)).map(Int64.init)
    }

    func run(_ console: Console) async throws {
        let signature = AuditSignature(actor: actor.actor(console), now: try await DatabaseCommand.now(console))
        let plan = try await DatabaseCommand.asOwner(console) { [name, changes] in
            try await PlanAdministration(database: $0).set(name, changes, by: signature)
        }
        guard let plan else { throw CommandFailure("there is no plan 'default' to start from") }
        if asJSON {
            console.printJSON { plan.write(to: &$0) }
        } else {
            var table = Table([plan])
            console.write(table.takeText())
        }
    }
}

extension Table {
    /// Plans as people read them.
    fileprivate init(_ plans: [AccountPlan]) {
        self.init([
            .text("plan"), .number("items"), .number("item bytes"), .number("bytes"), .number("sessions"),
            .number("shares"), .number("deleted days"),
        ])
        for plan in plans {
            let limits = plan.limits
            append([
                plan.name, "\(limits.items)", "\(limits.itemBytes)", "\(limits.bytes)", "\(limits.sessions)",
                "\(limits.shares)", "\(limits.deletedDays)",
            ])
        }
    }
}
