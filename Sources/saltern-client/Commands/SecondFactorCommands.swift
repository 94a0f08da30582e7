import CommandLineKit
import SalternClient

struct BeginSecondFactor: Command {
    static let words = ["second-factor", "begin"]
    static let summary = "create a secret for an authenticator app"
    static let example = "saltern-client second-factor begin"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        Enter the secret, or the whole address, in the app. Then run `saltern-client
        second-factor confirm`: the second factor is active after that.
        """

    private let proof: ProvenCommand

    init(_ arguments: inout Arguments) throws(UsageError) { proof = try ProvenCommand(&arguments) }

    func run(_ console: Console) async throws {
        let secret = try await proof.withAccount(console) { try await $0.vault.beginSecondFactor(password: $1) }
        try console.showOnce(["secret": secret.secret, "uri": secret.uri], asJSON: proof.asJSON) {
            VisibleText.list([secret.secret, secret.uri])
        }
    }
}

struct ConfirmSecondFactor: Command {
    static let words = ["second-factor", "confirm"]
    static let summary = "activate the second factor"
    static let example = "saltern-client second-factor confirm"
    static let help = """
        \(AccountOption.help)
          --code-file FILE      file with the app's code as first line (-: stdin)
          --json                one object, for scripts

        From then on a log-in needs a code. Each of the ten recovery codes replaces one
        code, once: print them.
        """

    private let account: AccountOption
    private let code: SecretOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        code = try SecretOption("--code-file", &arguments)
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        let codes = try await vault.confirmSecondFactor(code: try code.text("Code that the app shows"))
        try console.showOnce(["recoveryCodes": codes], asJSON: asJSON) { VisibleText.list(codes) }
    }
}

struct RenewSecondFactorCodes: Command {
    static let words = ["second-factor", "codes"]
    static let summary = "print new recovery codes"
    static let example = "saltern-client second-factor codes"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        Prints ten new recovery codes of the second factor. Earlier ones become invalid.
        """

    private let proof: ProvenCommand

    init(_ arguments: inout Arguments) throws(UsageError) { proof = try ProvenCommand(&arguments) }

    func run(_ console: Console) async throws {
        let codes = try await proof.withAccount(console) { try await $0.vault.renewSecondFactorCodes(password: $1) }
        try console.showOnce(["recoveryCodes": codes], asJSON: proof.asJSON) { VisibleText.list(codes) }
    }
}

struct EndSecondFactor: Command {
    static let words = ["second-factor", "end"]
    static let summary = "disable the second factor"
    static let example = "saltern-client second-factor end"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts
        """

    private let proof: ProvenCommand

    init(_ arguments: inout Arguments) throws(UsageError) { proof = try ProvenCommand(&arguments) }

    func run(_ console: Console) async throws {
        try await proof.withAccount(console) { try await $0.vault.endSecondFactor(password: $1) }
        try console.show(["ended": true], asJSON: proof.asJSON) { "log-ins need no code any more\n" }
    }
}
