import CommandLineKit
import SalternClient

struct ChangePassword: Command {
    static let words = ["password"]
    static let summary = "change the password"
    static let example = "saltern-client password"
    static let help = """
        \(AccountOption.help)
          --password-file FILE  file with the present password as first line (-: stdin)
          --new-password-file FILE
                                file with the new password as first line (-: stdin)
          --json                one object, for scripts

        All other sessions end. Items and the recovery code do not change. Other
        devices log in again, and lose no unsent changes.
        """

    private struct Record: Encodable {
        let changed: Bool
        let notices: [NoticeRecord]
    }

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
        let known = try await account.vault.notices()
        try await account.vault.changePassword(from: current, to: try new.readNew("New password"))
        let stopped = try await StoppedPasskeys(in: account.vault, except: known)
        try console.show(Record(changed: true, notices: stopped.notices), asJSON: asJSON) {
            "the password is changed; all other sessions have ended\n" + stopped.lines
        }
    }
}
