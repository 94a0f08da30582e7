import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct ShareItem: Command {
    static let words = ["share"]
    static let summary = "create a link that opens an item in any browser"
    static let usage = ["ITEM [OPTIONS]"]
    static let example = "saltern-client share \"shopping list\" --expires 7d --views 1"
    static let help = """
        \(OwnerOption.help)
          --expires TIME        how long the link works: 12h, 30d (until you end it)
          --views N             maximum number of views (unlimited)
          --json                one object, for scripts

        Anyone who has the whole link can read the item as it is now. Later changes are
        not included. Text and JSON are displayed. Other content is a file to save,
        named by the item's title.

        \(ItemReference.help)
        """

    private let owner: OwnerOption
    private let item: ItemReference
    private let lifetime: Duration?
    private let views: Int?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        lifetime = try arguments.duration("--expires", in: .seconds(60) ... .seconds(3_650 * 86_400))
        views = try arguments.integer("--views", in: 1...1_000_000)
        owner = try OwnerOption(&arguments)
        item = ItemReference(try arguments.word("the item"))
    }

    func run(_ console: Console) async throws {
        let opened = try await owner.open(console)
        let (account, items) = (opened.account, opened.items)
        let found = try await item.find(in: items)
        try await refuseTooLong(found.id, in: items, account.vault)
        guard let item = try await items.wholeItem(found.id), let base = URL(string: account.profile.server)
        else {
            throw VaultError.notFound
        }
        var end: Date?
        // By the server's clock, which ends the link.
        if let lifetime {
            end = try await account.vault.fetchServerTime() + TimeInterval(lifetime.components.seconds)
        }
        let link = try await account.vault.share(
            try SharedFile.payload(of: item), base: base, expiresAt: end, maxViews: views)
        try console.showOnce(["id": link.id, "url": link.url.absoluteString], asJSON: asJSON) {
            "\(link.url.absoluteString)\n"
        }
    }

    /// Rejects content that is too long for a share, before it is fetched.
    private func refuseTooLong(_ id: ItemID, in items: OwnedItems, _ vault: Vault) async throws {
        guard let body = try await items.item(id)?.body else { return }
        try await vault.refuseTooLong(bodyOf: ContentPieces(of: body, in: items).byteCount)
    }
}
