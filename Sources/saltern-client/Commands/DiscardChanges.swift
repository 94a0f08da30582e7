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

    private let account: AccountOption
    private let items: [ItemReference]
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        var items = [ItemReference(try arguments.word("the item"))]
        while let word = arguments.optionalWord() { items.append(ItemReference(word)) }
        self.items = items
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        let unsent = try await vault.unsentItems()
        let found = try items.map { try $0.find(in: unsent) }
        for item in found { try await vault.discardChange(item.id) }
        let ids = found.map(\.id.description)
        try console.show(["discarded": ids], asJSON: asJSON) { ids.map { "\($0) is given up here\n" }.joined() }
    }
}
