import CommandLineKit
import SalternServer

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
