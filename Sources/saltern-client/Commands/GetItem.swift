import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct GetItem: Command {
    static let words = ["get"]
    static let summary = "print an item, or write it to a file"
    static let help = """
        usage: saltern-client get ITEM [--output FILE] [--version N]

        \(AccountOption.help)
        \(RateOption.help)
          --output FILE         a new file that only you can read
          --version N           a version that was replaced, as saltern-client versions ITEM lists it
          --json                one object with id, collection, title, and text or data (base64)

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
        let (found, body) = try await content(in: vault)
        try write(found, body, to: console)
    }

    /// Writes the body to the file or to standard output. Apart from `run`, which suspends: Swift 6.3.1 crashes when it optimises
    /// one coroutine that has these throwing calls behind its last suspension and debug information.
    private func write(_ found: ItemSummary, _ body: SecureBytes, to console: Console) throws {
        if let output {
            try PrivateFile.create(output, with: body.withUnsafeBytes { Data($0) })
            if asJSON { try console.printJSON(["id": found.id.description, "file": output]) }
        } else if asJSON {
            try console.printJSON(ItemRecord(found, body))
        } else {
            console.writeContent(body.withUnsafeBytes { [UInt8]($0) })
        }
    }

    private func content(in vault: Vault) async throws -> (ItemSummary, SecureBytes) {
        if let version {
            let found = try await ReplacedItems.find(item, in: vault)
            let replaced = try await vault.item(found.id, replaced: Int64(version))
            return (found.replaced(by: replaced), try await vault.wholeContent(of: replaced.body))
        }
        let found = try await item.find(in: vault)
        guard let body = try await vault.wholeItem(found.id)?.body else { throw VaultError.notFound }
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
