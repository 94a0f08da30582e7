import CommandLineKit
import SalternClient

struct LogIn: Command {
    static let words = ["login"]
    static let summary = "use an account from here, or go on when its session has ended"
    static let help = """
        \(FirstContact.help)
        \(PasswordOption.help)
          --code-file FILE      the code of the second factor, or a recovery code of it, is the first line of this file
          --json                one object, for scripts

        \(FirstContact.trust)
        Fetches everything once. What was changed here before, and not sent, is still there and is sent.
        """

    /// What is printed of an account that is here now.
    struct Record: Encodable {
        let account: String
        let userid: String
        let server: String

        init(_ account: OpenAccount) {
            self.account = account.name
            userid = account.profile.userid
            server = account.profile.server
        }
    }

    private let contact: FirstContact
    private let password: PasswordOption
    private let code: SecretOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        contact = try FirstContact(&arguments)
        password = try PasswordOption(&arguments)
        code = try SecretOption("--code-file", &arguments)
    }

    func run(_ console: Console) async throws {
        let place = try await contact.place(console, allowsRename: true)
        let password = try password.read("Password of \(place.profile.userid)")
        let account = try await place.arrive { try await logIn($0, place, password, console) }
        let known = Set(try await account.vault.notices().map(\.number))
        _ = try await console.showingProgress(of: account.vault) { try await account.vault.sync() }
        let notices = try await account.vault.notices().filter { !known.contains($0.number) }
        try console.show(Record(account), asJSON: asJSON) {
            "\(account.name) is logged in\n" + notices.map { "\($0.text)\n" }.joined()
        }
        if !notices.isEmpty { throw CommandFailure([], status: ExitStatus.attention, code: "attention") }
    }

    private func logIn(
        _ settings: VaultSettings, _ place: FirstContact.Place, _ password: Password, _ console: Console
    ) async throws -> Vault {
        do {
            return try await logIn(settings, place, password, code: code.isGiven ? try code.text("Code") : nil)
        } catch VaultError.codeRequired where console.isTerminal {
            return try await logIn(settings, place, password, code: try code.text("Code of the second factor"))
        }
    }

    private func logIn(
        _ settings: VaultSettings, _ place: FirstContact.Place, _ password: Password, code: String?
    ) async throws -> Vault {
        let userid = place.profile.userid
        guard place.isRenamed, let vault = try await Vault.resume(settings) else {
            return try await Vault.logIn(settings, userid: userid, password: password, code: code)
        }
        try await vault.logInAgain(password: password, code: code, userid: userid)
        return vault
    }
}
