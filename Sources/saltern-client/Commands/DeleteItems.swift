import CommandLineKit
import SalternClient

struct DeleteItems: Command {
    static let words = ["delete"]
    static let summary = "delete items"
    static let usage = ["ITEM… [OPTIONS]"]
    static let example = "saltern-client delete \"shopping list\""
    static let help = """
        \(OwnerOption.help)
          --json                one object, for scripts

        `saltern-client restore` restores deleted items for 30 days.
        \(ItemReference.help)
        """

    private let named: NamedItems

    init(_ arguments: inout Arguments) throws(UsageError) { named = try NamedItems(&arguments) }

    func run(_ console: Console) async throws {
        let items = try await named.owner.open(console).items
        // All items are found before the first is deleted.
        var found: [ItemSummary] = []
        for item in named.items { found.append(try await item.find(in: items)) }
        for item in found { try await items.delete(item.id) }
        try named.show(found, as: "deleted", "is deleted", console)
    }
}
