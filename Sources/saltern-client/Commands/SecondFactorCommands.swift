import CommandLineKit
import SalternClient

struct BeginSecondFactor: Command {
    static let words = ["second-factor", "begin"]
    static let summary = "draw a secret for an authenticator app; it counts once it is confirmed"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts

        Give the secret, or the whole address, to the app; then saltern-client second-factor confirm.
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
    static let summary = "confirm the secret with a code, and print ten recovery codes"
    static let help = """
        \(AccountOption.help)
          --code-file FILE      the code that the app shows is the first line of this file; - is standard input
          --json                one object, for scripts

        From now on log-ins ask for a code. Each recovery code stands in for one, once: print them.
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
    static let summary = "print ten new recovery codes in the place of those that are left"
    static let help = """
        \(AccountOption.help)
        \(PasswordOption.help)
          --json                one object, for scripts
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
    static let summary = "let the password alone be enough again"
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
