import CommandLineKit
import SalternServer

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
