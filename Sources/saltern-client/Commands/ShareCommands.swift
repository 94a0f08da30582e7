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

struct ListShares: Command {
    static let words = ["shares"]
    static let summary = "list the active share links"
    static let example = "saltern-client shares"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        The links themselves are shown only once, by `saltern-client share`. The server
        does not store them.
        """

    private struct Record: Encodable {
        let id: String
        let createdAt: Date
        let expiresAt: Date?
        let maxViews: Int?
        let views: Int
        let bytes: Int

        init(_ share: ShareHeader) {
            id = share.id
            createdAt = share.createdAt
            expiresAt = share.expiresAt
            maxViews = share.maxViews
            views = share.views
            bytes = share.bytes
        }
    }

    private let account: AccountOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let shares = try await account.open(console).vault.shares().map(Record.init)
        try console.show(["shares": shares], asJSON: asJSON) {
            var table = Table([
                .text("id"), .text("created"), .text("expires"), .number("views"), .number("of"), .number("bytes"),
            ])
            for share in shares {
                table.append([
                    share.id, share.createdAt.shown, share.expiresAt?.shown, String(share.views),
                    share.maxViews.map(String.init), String(share.bytes),
                ])
            }
            return table.takeText()
        }
    }
}

struct EndShare: Command {
    static let words = ["shares", "end"]
    static let summary = "end a share link"
    static let usage = ["ID [OPTIONS]"]
    static let example = "saltern-client shares end 5kqvY2Rr"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts
        """

    private let account: AccountOption
    private let id: String
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        id = try arguments.word("the share's ID")
    }

    func run(_ console: Console) async throws {
        try await account.open(console).vault.endShare(id)
        try console.show(["ended": id], asJSON: asJSON) { "share \(VisibleText.visible(id)) has ended\n" }
    }
}

/// A file behind a link: a JSON object of exactly these members (docs/protocol.md, "Shares").
struct SharedFile: Codable {
    let filename: String
    let mediaType: String
    let data: Base64Bytes

    /// Returns the payload for an item: its text unchanged, any other content as a file.
    static func payload(of item: PlainItem) throws -> SecureBytes {
        let isText = item.body.withUnsafeBytes { String(validating: $0, as: UTF8.self) != nil }
        if isText { return item.body }
        let file = SharedFile(
            filename: item.title ?? "item.bin", mediaType: "application/octet-stream",
            data: Base64Bytes(item.body.withUnsafeBytes { [UInt8]($0) }))
        return SecureBytes(copying: Array(try JSONEncoder().encode(file)))
    }

    /// Decodes a shared file; nil for another payload.
    init?(payload: SecureBytes) {
        let json = payload.withUnsafeBytes { Data($0) }
        guard let members = try? JSONDecoder().decode([String: String].self, from: json),
            Set(members.keys) == ["filename", "mediaType", "data"],
            let file = try? JSONDecoder().decode(SharedFile.self, from: json)
        else { return nil }
        self = file
    }

    private init(filename: String, mediaType: String, data: Base64Bytes) {
        self.filename = filename
        self.mediaType = mediaType
        self.data = data
    }
}
