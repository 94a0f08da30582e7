import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct GetItem: Command {
    static let words = ["get"]
    static let summary = "print an item, or write it to a file"
    static let help = """
        usage: saltern-client get ITEM [--output FILE]

        \(AccountOption.help)
          --output FILE         a new file that only you can read
          --json                one object with id, collection, title, and text or data (base64)

        \(ItemReference.help)
        """

    private let account: AccountOption
    private let output: String?
    private let asJSON: Bool
    private let item: ItemReference

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        output = try arguments.option("--output")
        account = try AccountOption(&arguments)
        item = ItemReference(try arguments.word("the item"))
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        let found = try await item.find(in: vault)
        guard let body = try await vault.wholeItem(found.id)?.body else { throw VaultError.notFound }
        if let output {
            try PrivateFile.create(output, with: body.withUnsafeBytes { Data($0) })
            if asJSON { try console.printJSON(["id": found.id.description, "file": output]) }
            return
        }
        if asJSON { return try console.printJSON(ItemRecord(found, body)) }
        console.writeContent(body.withUnsafeBytes { [UInt8]($0) })
    }
}
