import CommandLineKit
import SalternClient

struct DiscardChanges: Command {
    static let words = ["discard"]
    static let summary = "give up what was changed of items here and not sent"
    static let help = """
        usage: saltern-client discard ITEM…

        \(AccountOption.help)
          --json                one object, for scripts

        For what the server does not take, such as what is too long or beyond the plan: saltern-client status names it. The item
        is what the server was last seen to have, and there is none where it has none. What was written here is among what
        saltern-client list --deleted shows, for 30 days.
        \(ItemReference.help)
        """

    private let named: NamedItems

    init(_ arguments: inout Arguments) throws(UsageError) { named = try NamedItems(&arguments) }

    func run(_ console: Console) async throws {
        let vault = try await named.account.open(console).vault
        let found = try named.find(in: await vault.unsentItems())
        for item in found { try await vault.discardChange(item.id) }
        try named.show(found, as: "discarded", "is given up here", console)
    }
}
