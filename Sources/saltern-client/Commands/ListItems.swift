import CommandLineKit
import SalternClient

struct ListItems: Command {
    static let words = ["list"]
    static let summary = "list the items on this device"
    static let example = "saltern-client list --collection notes"
    static let help = """
        \(OwnerOption.help)
          --collection NAME     only the items of one collection
          --deleted             deleted items that can be restored
          --json                one object, for scripts

        A star marks items that the server has not confirmed. Works without network:
        `saltern-client sync` fetches new items.
        """

    private let owner: OwnerOption
    private let collection: String?
    private let showsDeleted: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        showsDeleted = arguments.flag("--deleted")
        collection = try arguments.option("--collection")
        owner = try OwnerOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let access = try await owner.open(console).items
        let items =
            showsDeleted
            ? try await access.deletedItems().filter { collection == nil || $0.collection == collection }
            : try await access.items(in: collection)
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
