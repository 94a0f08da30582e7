import CommandLineKit
import SalternClient

struct LogOut: Command {
    static let words = ["logout"]
    static let summary = "end the session and remove everything of the account from this device"
    static let help = """
        \(AccountOption.help)
          --discard-unsent      also when changes were not sent: they are lost
          --json                one object, for scripts

        Works without network too: the session then ends by itself when nobody has used it for a while.
        """

    private let account: AccountOption
    private let discardsUnsent: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        discardsUnsent = arguments.flag("--discard-unsent")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        try await account.vault.signOut(discardingUnsentEdits: discardsUnsent)
        account.profiles.remove(account.name)
        try console.show(["loggedOut": account.name], asJSON: asJSON) { "\(account.name) is logged out\n" }
    }
}
