import CommandLineKit
import Postgres
import SalternServer

/// The words that commands on one account have in common.
struct AccountAct {
    /// What their help says.
    static let help = """
          --id ACCOUNT     the account's id, instead of a userid
        \(AdminActor.help)

        \(DatabaseCommand.ownerHelp)
        """

    private let actor: AdminActor
    let account: AccountReference

    init(_ arguments: inout Arguments) throws(UsageError) {
        actor = try AdminActor(&arguments)
        account = try arguments.account()
    }

    /// Does it, in the name of the actor.
    func perform(
        _ console: Console,
        _ body:
            @escaping @Sendable (AccountAdministration, AccountReference, AuditSignature) async throws ->
            AccountAdministration.Outcome
    ) async throws -> AccountAdministration.Outcome {
        let signature = try await actor.signature(console)
        return try await DatabaseCommand.asOwner(console) { [account] database in
            try await body(AccountAdministration(database: database), account, signature)
        }
    }
}

struct LockAccount: Command {
    static let words = ["account", "lock"]
    static let summary = "end an account's sessions and let nobody log in to it"
    static let help = """
        usage: saltern account lock USERID

        Log-ins with the right key are answered like those with a wrong one. What the account has stored stays.

        \(AccountAct.help)
        """

    private let act: AccountAct

    init(_ arguments: inout Arguments) throws(UsageError) { act = try AccountAct(&arguments) }

    func run(_ console: Console) async throws {
        let outcome = try await act.perform(console) { try await $0.lock($1, by: $2) }
        console.print(
            outcome.isChanged
                ? "account \(outcome.accountID) is locked; \(counted(outcome.sessionsEnded, "session has", "sessions have")) ended"
                : "account \(outcome.accountID) was locked already")
    }
}

struct UnlockAccount: Command {
    static let words = ["account", "unlock"]
    static let summary = "let people log in to a locked account again"
    static let help = """
        usage: saltern account unlock USERID

        \(AccountAct.help)
        """

    private let act: AccountAct

    init(_ arguments: inout Arguments) throws(UsageError) { act = try AccountAct(&arguments) }

    func run(_ console: Console) async throws {
        let outcome = try await act.perform(console) { try await $0.unlock($1, by: $2) }
        console.print("account \(outcome.accountID) \(outcome.isChanged ? "is unlocked" : "was not locked")")
    }
}

struct EndSessions: Command {
    static let words = ["account", "end-sessions"]
    static let summary = "end all sessions of an account, on every node at once"
    static let help = """
        usage: saltern account end-sessions USERID

        Whoever has the key can log in again at once.

        \(AccountAct.help)
        """

    private let act: AccountAct

    init(_ arguments: inout Arguments) throws(UsageError) { act = try AccountAct(&arguments) }

    func run(_ console: Console) async throws {
        let outcome = try await act.perform(console) { try await $0.endSessions($1, by: $2) }
        console.print(
            "account \(outcome.accountID): \(counted(outcome.sessionsEnded, "session has", "sessions have")) ended")
    }
}

struct SetAccountPlan: Command {
    static let words = ["account", "set-plan"]
    static let summary = "give an account another plan"
    static let help = """
        usage: saltern account set-plan USERID PLAN

        \(AccountAct.help)
        """

    private let act: AccountAct
    private let plan: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        act = try AccountAct(&arguments)
        plan = try arguments.word("the plan's name")
    }

    func run(_ console: Console) async throws {
        let outcome = try await act.perform(console) { [plan] in try await $0.assign(plan, to: $1, by: $2) }
        console.print("account \(outcome.accountID) \(outcome.isChanged ? "has" : "had") plan \(plan)")
    }
}
