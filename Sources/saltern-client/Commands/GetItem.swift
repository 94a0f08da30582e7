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
        \(AccountOption.help)
        \(RateOption.help)
          --output FILE         a new file that only you can read
          --version N           an earlier version, from `saltern-client versions ITEM`
          --json                one object with id, collection, title, and text or data
                                (base64)

        Long content is fetched and written in parts. After an error the output contains
        the first parts. With --output these stay in .saltern-ID.part beside FILE, and
        the same command resumes. FILE appears when it is complete.
        \(ItemReference.help)
        """

    private let account: AccountOption
    private let output: String?
    private let version: Int?
    private let asJSON: Bool
    private let item: ItemReference

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        version = try arguments.integer("--version", in: 1...Int.max)
        output = try arguments.option("--output")
        account = try AccountOption(withRate: &arguments)
        item = ItemReference(try arguments.word("the item"))
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        let (found, body) = try await item(in: vault)
        let content = ItemOutput(item: found, pieces: ContentPieces(of: body, in: vault))
        if let output {
            try await content.write(to: output)
            if asJSON { try console.printJSON(["id": found.id.description, "file": output]) }
        } else if asJSON {
            try await content.printJSON(console)
        } else {
            try await content.print(console)
        }
    }

    private func item(in vault: Vault) async throws -> (ItemSummary, SecureBytes) {
        if let version {
            let found = try await ReplacedItems.find(item, in: vault)
            let replaced = try await vault.item(found.id, replaced: Int64(version))
            return (found.replaced(by: replaced), replaced.body)
        }
        let found = try await item.find(in: vault)
        guard let body = try await vault.item(found.id)?.body else { throw VaultError.notFound }
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
