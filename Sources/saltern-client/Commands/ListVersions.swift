import CommandLineKit
import Foundation
import SalternClient

struct ListVersions: Command {
    static let words = ["versions"]
    static let summary = "list earlier versions of an item"
    static let usage = ["ITEM [OPTIONS]"]
    static let example = "saltern-client versions \"shopping list\""
    static let help = """
        \(OwnerOption.help)
          --local               without the versions that the server keeps
          --json                one object, for scripts

        Lists content that an edit, a sync or a merge replaced on this device in the
        last 30 days, and earlier content on the server. At most 32 versions are kept;
        quick successions are thinned out. `saltern-client get ITEM --version N` prints
        one, and `saltern-client restore ITEM --version N` restores it. Without network
        the list contains local versions only, and a notice reports this.
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

    private let owner: OwnerOption
    private let item: ItemReference
    private let asJSON: Bool
    private let isLocal: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        isLocal = arguments.flag("--local")
        owner = try OwnerOption(&arguments)
        item = ItemReference(try arguments.word("the item"))
    }

    func run(_ console: Console) async throws {
        let items = try await owner.open(console).items
        let found = try await find(in: items, console)
        if !isLocal { await fetch(found.id, items, console) }
        let versions = try await items.replacedVersions(of: found.id)
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

    /// Finds the item. If this device has no data of it, its whole id is needed, and the server must have versions.
    private func find(in items: OwnedItems, _ console: Console) async throws -> ItemSummary {
        do {
            return try await ReplacedItems.find(item, in: items)
        } catch let failure as CommandFailure where failure.code == "not_found" {
            guard !isLocal, let id = ItemID(item.text) else { throw failure }
            await fetch(id, items, console)
            return try await ReplacedItems.find(item, in: items)
        }
    }

    /// Fetches the server's versions. The list is useful without them, so an error becomes a notice.
    private func fetch(_ id: ItemID, _ items: OwnedItems, _ console: Console) async {
        do {
            let report = try await items.fetchVersions(of: id)
            guard report.refused > 0 else { return }
            console.notice(
                "\(report.refused) versions of the server cannot be decrypted or are not older; they are not listed",
                code: "versions_refused")
        } catch {
            let reason = Explanation.explain(error)?.messages.first ?? "\(error)"
            console.notice("the server's versions are not listed: \(reason)", code: "versions_not_fetched")
        }
    }
}

/// Items whose replaced versions can be named: present ones, and deleted ones.
enum ReplacedItems {
    /// Finds the one matching item, first among present ones.
    static func find(_ reference: ItemReference, in items: OwnedItems) async throws -> ItemSummary {
        do {
            return try await reference.find(in: items)
        } catch let failure as CommandFailure where failure.code == "not_found" {
            if let deleted = try? reference.find(in: await items.deletedItems()) { return deleted }
            // A removed item may still have versions.
            guard let id = ItemID(reference.text), let version = try await items.replacedVersions(of: id).first else {
                throw failure
            }
            return ItemSummary(
                id: id, collection: version.collection, title: version.title, byteCount: version.byteCount,
                isUnsent: false)
        }
    }
}
