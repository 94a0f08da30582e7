import CommandLineKit
import SalternServer

struct RemoveAccountSecondFactor: Command {
    static let words = ["account", "remove-second-factor"]
    static let summary = "remove the second factor of somebody who has lost it, with its recovery codes"
    static let help = """
        usage: saltern account remove-second-factor USERID
               saltern account remove-second-factor --id ACCOUNT

          --id ACCOUNT     the account's id, instead of a userid
        \(AdminActor.help)

        From then on the password is enough to log in: make sure who asks. The audit log and the person's security log
        say that it was done. \(DatabaseCommand.ownerHelp)
        """

    private let account: AccountReference
    private let admin: AdminActor

    init(_ arguments: inout Arguments) throws(UsageError) {
        admin = try AdminActor(&arguments)
        account = try arguments.account()
    }

    func run(_ console: Console) async throws {
        let signature = try await admin.signature(console)
        let account = try await DatabaseCommand.asOwner(console) { [account] in
            try await SecondFactorAdministration(database: $0).remove(of: account, by: signature)
        }
        console.print("account \(account) has no second factor any more")
    }
}
