import CommandLineKit
import SalternClient

struct LogOut: Command {
    static let words = ["logout"]
    static let summary = "end the session and remove everything of the account from this device"
    static let help = """
        \(AccountOption.help)
          --discard-unsent      also when changes were not sent: they are lost
          --json                one object, for scripts

        Everything is removed here first. The server has three seconds to end the session; without it, or without network, the
        session ends by itself when nobody has used it for a while.
        """

    private struct Record: Encodable {
        let loggedOut: String
        /// Whether the server has ended the session.
        let sessionEnded: Bool
    }

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
        let session = try await account.vault.signOut(discardingUnsentEdits: discardsUnsent)
        account.profiles.remove(account.name)
        let record = Record(loggedOut: account.name, sessionEnded: session == .ended)
        try console.show(record, asJSON: asJSON) {
            "\(account.name) is logged out\n"
                + (record.sessionEnded
                    ? ""
                    : "the server did not answer: the session ends by itself when nobody has used it for a while\n")
        }
    }
}
