import CommandLineKit
import SalternClient

struct CreateVault: Command {
    static let words = ["vault", "create"]
    static let summary = "create a shared vault"
    static let usage = ["NAME --as PERSON [OPTIONS]"]
    static let example = "saltern-client vault create household --as Ada"
    static let help = """
        \(AccountOption.help)
          --as PERSON           the name that other members see
          --json                one object, for scripts

        A shared vault has items that several people read and write. You are its owner:
        its items count against your plan. `saltern-client vault invite` invites others.
        Names have 1 to 64 bytes. The server cannot read them. Other users of this
        machine can see them in the list of processes.
        """

    private let account: AccountOption
    private let name: String
    private let person: String
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        let person = try arguments.option("--as")
        account = try AccountOption(&arguments)
        name = try arguments.word("the name of the vault")
        guard let person else { throw UsageError(message: "--as is missing: the name that other members see") }
        self.person = person
    }

    func run(_ console: Console) async throws {
        let shared: SharedVault
        do {
            shared = try await account.open(console).vault.shared.make(name: name, as: person)
        } catch VaultError.refused(let problem) where problem.code == .notFound {
            // The route is missing: the request names no vault.
            throw VaultError.shared(.notSupported)
        }
        try console.show(["id": shared.id.description, "name": shared.name], asJSON: asJSON) { "\(shared.id)\n" }
    }
}

struct RenameVault: Command {
    static let words = ["vault", "rename"]
    static let summary = "rename a shared vault for all members"
    static let usage = ["VAULT NAME [OPTIONS]"]
    static let example = "saltern-client vault rename household home"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        Managers can rename it. The next sync sends the name; other members see it after
        their sync. Other users of this machine can see it in the list of processes.
        \(VaultReference.help)
        """

    private let vault: NamedVault
    private let name: String

    init(_ arguments: inout Arguments) throws(UsageError) {
        vault = try NamedVault(&arguments)
        name = try arguments.word("the new name")
    }

    func run(_ console: Console) async throws {
        let shared = try await vault.fetch(console).shared
        try await shared.rename(name)
        try console.show(["id": shared.id.description, "name": name], asJSON: vault.asJSON) {
            "\(shared.id) is named \(VisibleText.visible(name)) after the next sync\n"
        }
    }
}
