import CommandLineKit
import SalternClient

/// An item that another device has deleted and that waits for approval, in the form for scripts.
struct HeldItem: Encodable {
    let id: ItemID
    let collection: String
    let title: String?

    init(_ deletion: HeldDeletion) {
        id = deletion.id
        collection = deletion.collection
        title = deletion.title
    }

    /// The maximum number of names in text output. `--json` has all of them.
    private static let shownNames = 20

    /// Returns the names, one line each.
    static func names(_ names: [String]) -> [String] {
        let shown = names.prefix(shownNames).map { "  waits: \(VisibleText.visible($0))" }
        return names.count > shownNames
            ? shown + ["  and \(names.count - shownNames) more: see --json"] : Array(shown)
    }

    /// Returns the lines about deletions by other devices, by collection.
    static func lines(_ deletions: [HeldDeletion]) -> [String] {
        let collections = Dictionary(grouping: deletions, by: \.collection).sorted { $0.key < $1.key }
        return collections.flatMap { collection, items in
            [
                counted(items.count, "item") + " of the collection \(VisibleText.visible(collection)) "
                    + (items.count == 1 ? "was" : "were") + " deleted elsewhere:"
            ]
                + names(items.map { $0.title.flatMap { $0.isEmpty ? nil : $0 } ?? $0.id.description })
        }
    }
}
