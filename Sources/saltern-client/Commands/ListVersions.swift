import CommandLineKit
import Foundation
import SalternClient

struct ListVersions: Command {
    static let words = ["versions"]
    static let summary = "list what an item held before it was replaced"
    static let help = """
        usage: saltern-client versions ITEM

        \(AccountOption.help)
          --json                one object, for scripts

        What was replaced on this device in the last 30 days, by an edit here, by a version from elsewhere or by a merge: up
        to 32 versions of an item, thinned out where they followed each other quickly. saltern-client get ITEM --version N
        prints one, and saltern-client restore ITEM --version N makes it the present one again.
        \(ItemReference.help)
        """

    private struct Record: Encodable {
        let version: Int64
        let collection: String
        let title: String?
        let bytes: Int
        let replacedAt: Date

        init(_ version: ReplacedVersion) {
            self.version = version.number
            collection = version.collection
            title = version.title
            bytes = version.byteCount
            replacedAt = version.replacedAt
        }
    }

    private struct List: Encodable {
        let id: ItemID
        let versions: [Record]
    }

    private let account: AccountOption
    private let item: ItemReference
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        item = ItemReference(try arguments.word("the item"))
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        let found = try await ReplacedItems.find(item, in: vault)
        let versions = try await vault.replacedVersions(of: found.id)
        try console.show(List(id: found.id, versions: versions.map(Record.init)), asJSON: asJSON) {
            var table = Table([
                .number("version"), .text("replaced"), .text("collection"), .number("bytes"), .text("title"),
            ])
            for version in versions {
                table.append([
                    String(version.number), version.replacedAt.shown, version.collection, String(version.byteCount),
                    version.title,
                ])
            }
            return table.takeText()
        }
    }
}
