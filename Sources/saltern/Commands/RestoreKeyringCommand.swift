import CommandLineKit
import SalternServer

struct RestoreAccountKeyring: Command {
    static let words = ["account", "restore-keyring"]
    static let summary = "put back a keyring that a stolen session or a faulty app has replaced"
    static let help = """
        usage: saltern account restore-keyring USERID
               saltern account restore-keyring --id ACCOUNT

          --revision N     which one, when several are kept
          --id ACCOUNT     the account's id, instead of a userid
        \(AdminActor.help)

        The keyring of the account is replaced by one that the server has kept, and with it what the recovery code opens. The
        server cannot test which keyring the owner's password opens. The present one is kept in its place, so that this can be
        undone with --revision. Sessions stay: saltern account end-sessions ends them. The audit log and the account's
        security log record it. \(DatabaseCommand.ownerHelp)
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
