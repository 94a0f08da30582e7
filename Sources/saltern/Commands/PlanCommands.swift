import CommandLineKit
import HTTPCore
import Postgres
import SalternServer

struct ListPlans: Command {
    static let words = ["plan", "list"]
    static let summary = "list the plans and their limits"
    static let example = "saltern plan list"
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
    static let summary = "change the limits of a plan, or create a plan"
    static let usage = ["NAME [OPTIONS]"]
    static let example = "saltern plan set pro --create --items 100000"
    static let help = """
          --create          creates a new plan
          --items N         items that are not deleted
          --item-bytes N    encrypted bytes of one item, title and body together
          --bytes N         encrypted bytes of all items
          --sessions N      live sessions
          --shares N        share links that have not ended
          --deleted-days N  days in which a deleted item can be restored; 0: none
          --vaults N        shared vaults that an account owns
          --memberships N   shared vaults that an account is a member of
          --vault-members N members of an own vault, at most 128
          --vault-items N   items of an own vault
          --vault-bytes N   encrypted bytes of all items of an own vault
          --yes             does not ask before it lowers limits of used plans
          --json            prints the plan as an object, for scripts
        \(AdminActor.help(column: 20))

        Other limits stay. A new plan starts as a copy of 'default'. An unknown name
        needs --create, and a known name rejects it. The limits apply from the next
        request on. Accounts above a limit lose nothing: they can read, shrink and
        delete.

        \(DatabaseCommand.ownerHelp)
        """

    private let name: String
    private let changes: AccountPlan.Changes
    private let actor: AdminActor
    private let asJSON: Bool
    private let isNew: Bool
    private let isConfirmed: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        isNew = arguments.flag("--create")
        isConfirmed = arguments.flag("--yes")
        actor = try AdminActor(&arguments)
        var changes = AccountPlan.Changes()
        changes.items = try Self.number("--items", from: 0, &arguments)
        changes.itemBytes = try Self.number("--item-bytes", from: 0, &arguments)
        changes.bytes = try Self.number("--bytes", from: 0, &arguments)
        changes.sessions = try Self.number("--sessions", from: 1, &arguments)
        changes.shares = try Self.number("--shares", from: 0, &arguments)
        changes.deletedDays = try Self.number("--deleted-days", from: 0, to: 3_650, &arguments).map { Int32($0) }
        changes.vaults = try Self.number("--vaults", from: 0, &arguments)
        changes.memberships = try Self.number("--memberships", from: 0, &arguments)
        changes.vaultMembers = try Self.number("--vault-members", from: 1, to: 128, &arguments)
        changes.vaultItems = try Self.number("--vault-items", from: 0, &arguments)
        changes.vaultBytes = try Self.number("--vault-bytes", from: 0, &arguments)
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
        let signature = try await actor.signature(console)
        try await check(console, now: signature.now)
        let plan = try await DatabaseCommand.asOwner(console) { [name, changes] in
            try await PlanAdministration(database: $0).set(name, changes, by: signature)
        }
        guard let plan else { throw CommandFailure("there is no plan 'default' to copy") }
        if asJSON {
            console.printJSON { plan.write(to: &$0) }
        } else {
            var table = Table([plan])
            console.write(table.takeText())
        }
    }
}

extension SetPlanLimits {
    /// Checks that the plan exists or may be created. Requests confirmation before lowering limits of a plan in use.
    private func check(_ console: Console, now: Timestamp) async throws {
        let (known, hasAccounts) = try await DatabaseCommand.asOwner(console, statementTimeout: Self.patience) {
            [name, changes] in
            let administration = PlanAdministration(database: $0)
            let known = try await administration.plans()
            guard let plan = known.first(where: { $0.name == name }), !changes.reductions(of: plan.limits).isEmpty
            else {
                return (known, false)
            }
            return (known, try await administration.hasAccounts(name, now: now))
        }
        guard let plan = known.first(where: { $0.name == name }) else {
            if isNew { return }
            let names = known.map(\.name).joined(separator: ", ")
            throw CommandFailure(
                "there is no plan \(name), only \(names): --create creates it", status: 1, code: "no_such_plan")
        }
        if isNew { throw CommandFailure("there is a plan \(name) already", status: 1, code: "plan_exists") }
        guard hasAccounts, !isConfirmed else { return }
        let reductions = changes.reductions(of: plan.limits).joined(separator: ", ")
        try console.confirm("Lower the limits of all accounts with the plan \(name): \(reductions)?")
    }

    /// The time limit: the search for an account with a rare plan reads all accounts.
    static let patience = Duration.seconds(600)
}

struct RemovePlanCommand: Command {
    static let words = ["plan", "remove"]
    static let summary = "remove an unused plan"
    static let usage = ["NAME [OPTIONS]"]
    static let example = "saltern plan remove trial"
    static let help = """
        \(AdminActor.help)

        No account and no invite may have the plan. The plan 'default' cannot be
        removed.

        \(DatabaseCommand.ownerHelp)
        """

    private let name: String
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        actor = try AdminActor(&arguments)
        name = try arguments.word("the plan's name")
    }

    func run(_ console: Console) async throws {
        let signature = try await actor.signature(console)
        try await DatabaseCommand.asOwner(console, statementTimeout: SetPlanLimits.patience) { [name] in
            try await PlanAdministration(database: $0).remove(name, by: signature)
        }
        console.print("plan \(name) is removed")
    }
}

extension Table {
    /// Makes a table of plans for people.
    fileprivate init(_ plans: [AccountPlan]) {
        self.init([
            .text("plan"), .number("items"), .number("item bytes"), .number("bytes"), .number("sessions"),
            .number("shares"), .number("deleted days"), .number("vaults"), .number("memberships"),
            .number("vault members"), .number("vault items"), .number("vault bytes"),
        ])
        for plan in plans {
            let limits = plan.limits
            append([
                plan.name, "\(limits.items)", "\(limits.itemBytes)", "\(limits.bytes)", "\(limits.sessions)",
                "\(limits.shares)", "\(limits.deletedDays)", "\(limits.vaults)", "\(limits.memberships)",
                "\(limits.vaultMembers)", "\(limits.vaultItems)", "\(limits.vaultBytes)",
            ])
        }
    }
}
