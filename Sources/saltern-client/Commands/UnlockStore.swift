import CommandLineKit
import SalternClient

struct UnlockStore: Command {
    static let words = ["unlock"]
    static let summary = "open this device's store with the password, offline"
    static let example = "saltern-client unlock"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        For a store whose device key is lost or damaged. Use the latest password of this
        device. Items and unsent changes are available again, and `saltern-client login`
        opens a new session. If another device has changed password and key, unlock
        with the earlier password, then log in with the new one.
        """

    private struct Record: Encodable {
        let account: String
        let unsent: Int
    }

    private let account: AccountOption
    private let password: PasswordOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        password = try PasswordOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        if await account.vault.isLocked {
            try await account.vault.unlock(try password.read("Password of \(account.profile.userid)"))
        }
        let unsent = try await account.vault.unsentCount()
        try console.show(Record(account: account.name.description, unsent: unsent), asJSON: asJSON) {
            "\(account.name.shown) is open; \(counted(unsent, "change is", "changes are")) not sent\n"
        }
    }
}
