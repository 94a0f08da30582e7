import CommandLineKit
import SalternClient

struct RestoreItems: Command {
    static let words = ["restore"]
    static let summary = "restore deleted items or an earlier version"
    static let usage = ["ITEM… [OPTIONS]", "ITEM --version N [OPTIONS]"]
    static let example = "saltern-client restore \"shopping list\" --version 2"
    static let help = """
        \(OwnerOption.help)
          --version N           an earlier version, from `saltern-client versions ITEM`
          --json                one object, for scripts

        `saltern-client list --deleted` lists items that were deleted on this device, or
        that this device had, for 30 days. A restored version replaces the present one,
        which becomes an earlier version.
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
        let items = try await named.owner.open(console).items
        var found: [ItemSummary]
        if let version {
            found = [try await ReplacedItems.find(named.items[0], in: items)]
            try await items.restore(found[0].id, replaced: Int64(version))
        } else {
            found = try named.find(in: await items.deletedItems())
            for item in found { try await items.restore(item.id) }
        }
        try named.show(found, as: "restored", "is restored", console)
    }
}
