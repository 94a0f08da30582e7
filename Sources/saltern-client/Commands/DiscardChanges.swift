import CommandLineKit
import SalternClient

struct DiscardChanges: Command {
    static let words = ["discard"]
    static let summary = "discard unsent changes of items"
    static let usage = ["ITEM… [OPTIONS]"]
    static let example = "saltern-client discard \"shopping list\""
    static let help = """
        \(AccountOption.help)
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
        let vault = try await named.account.open(console).vault
        let found = try named.find(in: await vault.unsentItems())
        for item in found { try await vault.discardChange(item.id) }
        try named.show(found, as: "discarded", "is discarded", console)
    }
}
