import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct GetItem: Command {
    static let words = ["get"]
    static let summary = "print an item, or write it to a file"
    static let usage = ["ITEM [OPTIONS]"]
    static let example = "saltern-client get \"shopping list\" --output list.txt"
    static let help = """
        \(OwnerOption.help)
        \(RateOption.help)
          --output FILE         a new file that only you can read
          --version N           an earlier version, from `saltern-client versions ITEM`
          --deleted             a deleted item, from `saltern-client list --deleted`
          --json                one object with id, collection, title, and text or data
                                (base64)

        Long content is fetched and written in parts. After an error the output contains
        the first parts. With --output these stay in .saltern-ID.part beside FILE, and
        the same command resumes. FILE appears when it is complete.
        \(ItemReference.help)
        """

    private let owner: OwnerOption
    private let output: String?
    private let version: Int?
    private let isDeleted: Bool
    private let asJSON: Bool
    private let item: ItemReference

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        version = try arguments.integer("--version", in: 1...Int.max)
        isDeleted = arguments.flag("--deleted")
        output = try arguments.option("--output")
        owner = try OwnerOption(withRate: &arguments)
        item = ItemReference(try arguments.word("the item"))
        if isDeleted, version != nil { throw UsageError(message: "--deleted and --version exclude each other") }
    }

    func run(_ console: Console) async throws {
        let items = try await owner.open(console).items
        let (found, body) = try await item(in: items)
        let content = ItemOutput(item: found, pieces: ContentPieces(of: body, in: items))
        if let output {
            try await content.write(to: output)
            if asJSON { try console.printJSON(["id": found.id.description, "file": output]) }
        } else if asJSON {
            try await content.printJSON(console)
        } else {
            try await content.print(console)
        }
    }

    private func item(in items: OwnedItems) async throws -> (ItemSummary, SecureBytes) {
        if let version {
            let found = try await ReplacedItems.find(item, in: items)
            let replaced = try await items.item(found.id, replaced: Int64(version))
            return (found.replaced(by: replaced), replaced.body)
        }
        if isDeleted {
            let found = try item.find(in: await items.deletedItems())
            return (found, try await items.deletedItem(found.id).body)
        }
        let found = try await item.find(in: items)
        guard let body = try await items.item(found.id)?.body else { throw VaultError.notFound }
        return (found, body)
    }
}

extension ItemSummary {
    /// The same item with another version's title.
    fileprivate func replaced(by version: PlainItem) -> ItemSummary {
        ItemSummary(
            id: id, collection: collection, title: version.title, byteCount: version.body.count, isUnsent: false)
    }
}
