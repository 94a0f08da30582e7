import CommandLineKit
import SalternClient

struct ListVaults: Command {
    static let words = ["vault", "list"]
    static let summary = "list the shared vaults"
    static let example = "saltern-client vault list"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        Works without network, with the state of the last sync. Problems are below the
        list, with exit status 2.
        """

    private let account: AccountOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let vaults = try await account.open(console).vault.sharedVaults()
        try console.show(["vaults": vaults.map { VaultRecord($0) }], asJSON: asJSON) {
            var table = Table([.text("id"), .text("role"), .number("members"), .text("name")])
            for vault in vaults {
                table.append([vault.id.description, vault.roleText, String(vault.members.count), vault.name])
            }
            return table.takeText() + vaults.flatMap(\.lines).map { $0 + "\n" }.joined()
        }
        if vaults.contains(where: \.wantsAttention) {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }
}
