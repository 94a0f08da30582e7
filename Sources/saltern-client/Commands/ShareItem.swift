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
        \(AccountOption.help)
          --expires TIME        how long the link works: 12h, 30d (until you end it)
          --views N             maximum number of views (unlimited)
          --json                one object, for scripts

        Anyone who has the whole link can read the item as it is now. Later changes are
        not included. Text and JSON are displayed. Other content is a file to save,
        named by the item's title.

        \(ItemReference.help)
        """

    private let account: AccountOption
    private let item: ItemReference
    private let lifetime: Duration?
    private let views: Int?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        lifetime = try arguments.duration("--expires", in: .seconds(60) ... .seconds(3_650 * 86_400))
        views = try arguments.integer("--views", in: 1...1_000_000)
        account = try AccountOption(&arguments)
        item = ItemReference(try arguments.word("the item"))
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let found = try await item.find(in: account.vault)
        try await refuseTooLong(found.id, account.vault)
        guard let item = try await account.vault.wholeItem(found.id), let base = URL(string: account.profile.server)
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
    private func refuseTooLong(_ id: ItemID, _ vault: Vault) async throws {
        guard let body = try await vault.item(id)?.body else { return }
        try await vault.refuseTooLong(bodyOf: ContentPieces(of: body, in: vault).byteCount)
    }
}
