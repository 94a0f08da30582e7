import CommandLineKit
import Postgres
import SalternServer

struct DeleteAccount: Command {
    static let words = ["account", "delete"]
    static let summary = "delete an account, or all unused accounts"
    static let usage = ["USERID [OPTIONS]", "--never-used --older-than TIME [OPTIONS]"]
    static let example = "saltern account delete --never-used --older-than 30d --dry-run"
    static let help = """
          --id ACCOUNT        the account's id, instead of a userid
          --never-used        accounts without items, recovery key, second factor,
                              passkey, share, shared vault, rotation or receipt, that
                              are not locked, and whose sessions were used only in
                              the first minute
          --older-than TIME   … and that were registered longer ago: 12h, 30d
          --dry-run           only counts them
          --yes               does not ask, for scripts
        \(AdminActor.help(column: 22))

        Deletes all data of an account in one transaction, and its own shared vaults
        for all their members. A row in the audit log remains. Unused accounts are
        deleted in batches of fifty. Ctrl-C stops between two batches, and the
        command can be run again.

        \(DatabaseCommand.ownerHelp)
        """

    private enum Target {
        case one(AccountReference)
        case neverUsed(olderThan: Duration, isDryRun: Bool)
    }

    private let target: Target
    private let isConfirmed: Bool
    private let actor: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        isConfirmed = arguments.flag("--yes")
        actor = try AdminActor(&arguments)
        let isDryRun = arguments.flag("--dry-run")
        let olderThan = try arguments.duration("--older-than", in: .seconds(3_600) ... .seconds(3_650 * 86_400))
        if arguments.flag("--never-used") {
            guard let olderThan else { throw UsageError(message: "--never-used needs --older-than") }
            target = .neverUsed(olderThan: olderThan, isDryRun: isDryRun)
            return
        }
        guard olderThan == nil, !isDryRun else {
            throw UsageError(message: "--older-than and --dry-run belong to --never-used")
        }
        target = .one(try arguments.account())
    }

    func run(_ console: Console) async throws {
        switch target {
        case .one(let account): try await delete(account, console)
        case .neverUsed(let age, true): _ = try await count(olderThan: age, console)
        case .neverUsed(let age, false): try await deleteNeverUsed(olderThan: age, console)
        }
    }

    private func delete(_ account: AccountReference, _ console: Console) async throws {
        if !isConfirmed {
            let found = try await DatabaseCommand.asOwner(console) {
                try await AccountInspection(database: $0, sessions: SessionPolicy()).describe(
                    account, now: try await DatabaseClock.now(of: $0)
                ).account
            }
            let vaults = counted(found.vaults, "shared vault")
            try console.confirm(
                "Delete account \(found.id) with \(counted(found.items, "item")) and \(counted(found.bytes, "byte")) for good"
                    + (found.vaults > 0 ? ", and its \(vaults) for all members?" : "?"))
        }
        let signature = try await actor.signature(console)
        let outcome = try await DatabaseCommand.asOwner(console) {
            try await AccountAdministration(database: $0).delete(account, by: signature)
        }
        console.print("account \(outcome.accountID) is deleted")
    }

    private func count(olderThan age: Duration, _ console: Console) async throws -> Int {
        let before = try await DatabaseCommand.now(console) - age
        let interruption = Interruption()
        let progress = try await DatabaseCommand.asOwner(console) { [wish = interruption.wish] database in
            var bar = ProgressBar(console, "accounts examined")
            let progress = try await NeverUsedAccounts(database: database, createdBefore: before).count { progress in
                bar.show(progress.looked, of: progress.total, note: "\(progress.found) never used")
                return !wish.isThere
            }
            bar.end()
            return progress
        }
        if interruption.wish.isThere { throw interruption.wish.fulfilled("ended by a signal; nothing was deleted") }
        console.print(
            "\(progress.found) of \(counted(progress.looked, "account")) "
                + (progress.found == 1 ? "was never used" : "were never used"))
        return progress.found
    }

    private func deleteNeverUsed(olderThan age: Duration, _ console: Console) async throws {
        if !isConfirmed {
            let found = try await count(olderThan: age, console)
            if found == 0 { return }
            try console.confirm(
                found == 1 ? "Delete this account for good?" : "Delete these \(found) accounts for good?")
        }
        let signature = try await actor.signature(console)
        let interruption = Interruption()
        let progress = try await DatabaseCommand.asOwner(console) { [wish = interruption.wish] database in
            var bar = ProgressBar(console, "accounts examined")
            let accounts = NeverUsedAccounts(database: database, createdBefore: signature.now - age)
            let progress = try await accounts.delete(by: signature) { progress in
                bar.show(progress.looked, of: progress.total, note: "\(progress.deleted) deleted")
                return !wish.isThere
            }
            bar.end()
            return progress
        }
        console.print(
            "deleted \(progress.deleted) of \(counted(progress.looked, "examined account"))"
        )
        if interruption.wish.isThere {
            throw interruption.wish.fulfilled("ended by a signal before all accounts were examined")
        }
    }
}
