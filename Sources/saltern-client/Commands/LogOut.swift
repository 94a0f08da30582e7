import CommandLineKit
import SalternClient

struct LogOut: Command {
    static let words = ["logout"]
    static let summary = "end the session and remove the account from this device"
    static let example = "saltern-client logout"
    static let help = """
        \(AccountOption.help)
          --discard-unsent      also with unsent changes, which are lost
          --forget-deletions    also with deletions that wait for --allow-deletions; the
                                next sync of the folder uploads those files again
          --json                one object, for scripts

        Local data is removed first. The server then has three seconds to end the
        session. Without network the session ends after its idle time.
        """

    private struct Record: Encodable {
        let loggedOut: String
        /// True when the server has ended the session.
        let sessionEnded: Bool
    }

    private let account: AccountOption
    private let discardsUnsent: Bool
    private let forgetsDeletions: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        discardsUnsent = arguments.flag("--discard-unsent")
        forgetsDeletions = arguments.flag("--forget-deletions")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let session = try await signOut(account.vault)
        await account.removeFiles()
        let record = Record(loggedOut: account.name.description, sessionEnded: session == .ended)
        try console.show(record, asJSON: asJSON) {
            "\(account.name.shown) is logged out\n"
                + (record.sessionEnded
                    ? ""
                    : "the server did not answer: the unused session expires later\n")
        }
    }

    private func signOut(_ vault: Vault) async throws -> Vault.SessionEnd {
        do {
            return try await vault.signOut(
                discardingUnsentEdits: discardsUnsent, forgettingHeldDeletions: forgetsDeletions)
        } catch VaultError.deletionsHeld {
            throw CommandFailure(
                "deletions wait for confirmation: use sync --allow-deletions, for a folder sync DIR --allow-deletions, "
                    + "or see --forget-deletions", status: ExitStatus.attention,
                code: "deletions_held")
        }
    }
}
