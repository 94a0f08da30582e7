import CommandLineKit
import Postgres
import SalternServer

/// The options that commands on one account share.
struct AccountAct {
    /// Their help text.
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

    /// Performs the action in the actor's name.
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
    static let summary = "lock an account and end its sessions"
    static let usage = ["USERID [OPTIONS]"]
    static let example = "saltern account lock ada@example.org --reason \"stolen laptop\""
    static let help = """
        A log-in with the right key gets the same reply as one with a wrong key. The
        account's data stays.

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
    static let summary = "unlock an account"
    static let usage = ["USERID [OPTIONS]"]
    static let example = "saltern account unlock ada@example.org"
    static let help = """
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
    static let summary = "end all sessions of an account, on every node"
    static let usage = ["USERID [OPTIONS]"]
    static let example = "saltern account end-sessions ada@example.org"
    static let help = """
        Anyone who has the password key can log in again at once.

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
    static let summary = "change the plan of an account"
    static let usage = ["USERID PLAN [OPTIONS]"]
    static let example = "saltern account set-plan ada@example.org pro"
    static let help = """
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
