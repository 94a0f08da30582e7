import CommandLineKit
import SalternClient

struct DeleteItems: Command {
    static let words = ["delete"]
    static let summary = "delete items; restore brings them back for 30 days"
    static let help = """
        usage: saltern-client delete ITEM…

        \(AccountOption.help)
          --json                one object, for scripts

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
        // All are found before the first is deleted.
        var found: [ItemSummary] = []
        for item in items { found.append(try await item.find(in: vault)) }
        for item in found { try await vault.delete(item.id) }
        let ids = found.map(\.id.description)
        try console.show(["deleted": ids], asJSON: asJSON) { ids.map { "\($0) is deleted\n" }.joined() }
    }
}
