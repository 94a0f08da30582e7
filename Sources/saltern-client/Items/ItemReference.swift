import CommandLineKit
import SalternClient

/// A user's reference to an item: its id, the first characters of it (at least four), or its title.
struct ItemReference {
    static let help = """
        ITEM is an item's id, its first characters (at least four), or its title.
        """

    let text: String

    init(_ text: String) { self.text = text }

    /// Finds the one matching item of a vault.
    func find(in vault: Vault) async throws -> ItemSummary {
        if let id = ItemID(text), let item = try await vault.summary(of: id) { return item }
        return try find(in: await vault.items())
    }

    /// Finds the one matching item.
    /// - Throws: ``CommandFailure`` when there is none, or several.
    func find(in items: [ItemSummary]) throws(CommandFailure) -> ItemSummary {
        var found: [ItemSummary] = []
        if let id = ItemID(text) { found = items.filter { $0.id == id } }
        // Byte by byte first: `String` considers canonically equivalent titles equal, and a keyboard may write either
        // form.
        if found.isEmpty { found = items.filter { $0.title.map { Array($0.utf8) } == Array(text.utf8) } }
        if found.isEmpty { found = items.filter { $0.title == text } }
        if found.isEmpty, text.utf8.count >= 4 {
            found = items.filter { $0.id.description.hasPrefix(text.lowercased()) }
        }
        guard let item = found.first else {
            throw CommandFailure(
                "there is no item \(VisibleText.visible(text))", status: ExitStatus.notFound, code: "not_found")
        }
        guard found.count == 1 else {
            throw CommandFailure(
                ["\(VisibleText.visible(text)) is several items:"] + found.map(\.id.description),
                status: ExitStatus.notFound, code: "ambiguous")
        }
        return item
    }
}
