import CommandLineKit
import SalternClient

struct ChangePassword: Command {
    static let words = ["password"]
    static let summary = "set another password; all other sessions end"
    static let help = """
        \(AccountOption.help)
          --password-file FILE  the present password is the first line of this file; - is standard input
          --new-password-file FILE
                                the new one
          --json                one object, for scripts

        Items and the recovery code stay as they are. Other devices log in again, and lose nothing that they have not sent.
        """

    private let account: AccountOption
    private let current: PasswordOption
    private let new: PasswordOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        current = try PasswordOption(&arguments)
        new = try PasswordOption(&arguments, "--new-password-file")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let current = try current.read("Present password of \(account.profile.userid)")
        try await account.vault.changePassword(from: current, to: try new.readNew("New password"))
        try console.show(["changed": true], asJSON: asJSON) {
            "the password is changed; all other sessions have ended\n"
        }
    }
}
