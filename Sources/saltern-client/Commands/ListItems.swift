import CommandLineKit
import SalternClient

struct ListItems: Command {
    static let words = ["list"]
    static let summary = "list the items that are here"
    static let help = """
        \(AccountOption.help)
          --collection NAME     only those of one collection
          --deleted             what was deleted and can be restored
          --json                one object, for scripts

        A star: the server has not confirmed it. Works without network; saltern-client sync fetches what is new.
        """

    private let account: AccountOption
    private let collection: String?
    private let showsDeleted: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        showsDeleted = arguments.flag("--deleted")
        collection = try arguments.option("--collection")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        let items =
            showsDeleted
            ? try await vault.deletedItems().filter { collection == nil || $0.collection == collection }
            : try await vault.items(in: collection)
        try console.show(["items": items.map(ItemLine.init)], asJSON: asJSON) {
            var table = Table([.text("id"), .text(""), .text("collection"), .number("bytes"), .text("title")])
            for item in items {
                table.append([
                    item.id.description, item.isUnsent ? "*" : "", item.collection,
                    item.byteCount.map(String.init) ?? "unreadable", item.title,
                ])
            }
            return table.takeText()
        }
    }
}
