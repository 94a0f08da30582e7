import CommandLineKit
import SalternClient

/// What is dangerous asks for the password again.
struct ProvenCommand {
    let asJSON: Bool
    let account: AccountOption
    private let password: PasswordOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        password = try PasswordOption(&arguments)
        account = try AccountOption(&arguments)
    }

    /// The same for a command that can be slowed down.
    init(withRate arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        password = try PasswordOption(&arguments)
        account = try AccountOption(withRate: &arguments)
    }

    func withAccount<Result>(
        _ console: Console, _ body: (OpenAccount, Password) async throws -> Result
    ) async throws -> Result {
        let account = try await account.open(console)
        return try await body(account, try password.read("Password of \(account.profile.userid)"))
    }
}
