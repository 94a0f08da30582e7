import CommandLineKit
import SalternClient

/// The options of a command that requires the password again, because its effect is serious.
struct ProvenCommand {
    let asJSON: Bool
    let account: AccountOption
    private let password: PasswordOption

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        password = try PasswordOption(&arguments)
        account = try AccountOption(&arguments)
    }

    /// Parses the options with a rate limit.
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
