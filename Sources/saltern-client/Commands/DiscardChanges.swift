import CommandLineKit
import SalternClient

struct DiscardChanges: Command {
    static let words = ["discard"]
    static let summary = "discard unsent changes of items"
    static let usage = ["ITEM… [OPTIONS]"]
    static let example = "saltern-client discard \"shopping list\""
    static let help = """
        \(OwnerOption.help)
          --json                one object, for scripts

        For changes that the server rejects, such as content beyond the plan.
        `saltern-client status` names these items. The item gets the server's latest
        known version, or is removed if the server has none. The discarded content
        stays in `saltern-client list --deleted` for 30 days.
        \(ItemReference.help)
        """

    private let named: NamedItems

    init(_ arguments: inout Arguments) throws(UsageError) { named = try NamedItems(&arguments) }

    func run(_ console: Console) async throws {
        let items = try await named.owner.open(console).items
        let found = try named.find(in: await items.unsentItems(limit: .max))
        for item in found { try await items.discardChange(item.id) }
        try named.show(found, as: "discarded", "is discarded", console)
    }
}
