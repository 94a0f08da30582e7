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

struct RemoveAccountSecondFactor: Command {
    static let words = ["account", "remove-second-factor"]
    static let summary = "remove the second factor of an account"
    static let usage = ["USERID [OPTIONS]", "--id ACCOUNT [OPTIONS]"]
    static let example = "saltern account remove-second-factor ada@example.org"
    static let help = """
          --id ACCOUNT     the account's id, instead of a userid
        \(AdminActor.help)

        For users who have lost it. Removes one-time codes, their recovery codes and
        all passkeys, and prints which. From then on the password is enough to log in:
        verify the user's identity first. The audit log and the account's security log
        record it.

        \(DatabaseCommand.ownerHelp)
        """

    private let account: AccountReference
    private let admin: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        admin = try AdminActor(&arguments)
        account = try arguments.account()
    }

    func run(_ console: Console) async throws {
        let signature = try await admin.signature(console)
        let removed = try await DatabaseCommand.asOwner(console) { [account] in
            try await SecondFactorAdministration(database: $0).remove(of: account, by: signature)
        }
        if removed.hadCodes { console.print("removed the one-time codes and their recovery codes") }
        for name in removed.passkeys { console.print("removed the passkey \(name)") }
        console.print("account \(removed.account) has no second factor any more")
    }
}

struct RestoreAccountKeyring: Command {
    static let words = ["account", "restore-keyring"]
    static let summary = "restore an earlier keyring of an account"
    static let usage = ["USERID [OPTIONS]", "--id ACCOUNT [OPTIONS]"]
    static let example = "saltern account restore-keyring ada@example.org --revision 3"
    static let help = """
          --revision N     the keyring to restore, where several are kept
          --id ACCOUNT     the account's id, instead of a userid
        \(AdminActor.help)

        For a keyring that a stolen session or a faulty app has replaced. Also restores
        the matching recovery data. The server cannot check which keyring the password
        opens. It keeps the present keyring, so --revision can undo this. Sessions stay:
        `saltern account end-sessions` ends them. The audit log and the account's
        security log record it.

        \(DatabaseCommand.ownerHelp)
        """

    private let account: AccountReference
    private let admin: AdminActor
    private let revision: Int?

    init(_ arguments: inout Arguments) throws(UsageError) {
        admin = try AdminActor(&arguments)
        revision = try arguments.integer("--revision", in: 1...Int.max)
        account = try arguments.account()
    }

    func run(_ console: Console) async throws {
        let signature = try await admin.signature(console)
        let restored = try await DatabaseCommand.asOwner(console) { [account, revision] in
            try await AccountAdministration(database: $0).restoreKeyring(
                of: account, revision: revision.map(Int64.init), by: signature)
        }
        console.print(
            "account \(restored.accountID): keyring \(restored.revision) is in force again, as revision "
                + "\(restored.newRevision)")
    }
}
