import CommandLineKit
import SalternClient

struct RestoreItems: Command {
    static let words = ["restore"]
    static let summary = "bring back items that were deleted, or a version that was replaced, here or elsewhere"
    static let help = """
        usage: saltern-client restore ITEM…
               saltern-client restore ITEM --version N

        \(AccountOption.help)
          --version N           a version that was replaced, as saltern-client versions ITEM lists it
          --json                one object, for scripts

        saltern-client list --deleted shows what was deleted: what this device had, for 30 days. A restored version takes the
        place of the present one, which is kept like every version that is replaced.
        \(ItemReference.help)
        """

    private let named: NamedItems
    private let version: Int?

    init(_ arguments: inout Arguments) throws(UsageError) {
        version = try arguments.integer("--version", in: 1...Int.max)
        named = try NamedItems(&arguments)
        if version != nil, named.items.count != 1 {
            throw UsageError(message: "--version belongs to one item")
        }
    }

    func run(_ console: Console) async throws {
        let vault = try await named.account.open(console).vault
        var found: [ItemSummary]
        if let version {
            found = [try await ReplacedItems.find(named.items[0], in: vault)]
            try await vault.restore(found[0].id, replaced: Int64(version))
        } else {
            found = try named.find(in: await vault.deletedItems())
            for item in found { try await vault.restore(item.id) }
        }
        try named.show(found, as: "restored", "is restored", console)
    }
}
