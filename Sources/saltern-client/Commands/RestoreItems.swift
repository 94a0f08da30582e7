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
        let deleted = try await vault.deletedItems()
        let found = try items.map { try $0.find(in: deleted) }
        for item in found { try await vault.restore(item.id) }
        let ids = found.map(\.id.description)
        try console.show(["restored": ids], asJSON: asJSON) { ids.map { "\($0) is restored\n" }.joined() }
    }
}
