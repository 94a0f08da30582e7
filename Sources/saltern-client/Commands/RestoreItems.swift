import CommandLineKit
import SalternClient

struct RestoreItems: Command {
    static let words = ["restore"]
    static let summary = "bring back items that were deleted, here or elsewhere"
    static let help = """
        usage: saltern-client restore ITEM…

        \(AccountOption.help)
          --json                one object, for scripts

        saltern-client list --deleted shows what there is: what this device had, for 30 days.
        \(ItemReference.help)
        """

    private let named: NamedItems

    init(_ arguments: inout Arguments) throws(UsageError) { named = try NamedItems(&arguments) }

    func run(_ console: Console) async throws {
        let vault = try await named.account.open(console).vault
        let found = try named.find(in: await vault.deletedItems())
        for item in found { try await vault.restore(item.id) }
        try named.show(found, as: "restored", "is restored", console)
    }
}
