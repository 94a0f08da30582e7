import CommandLineKit
import SalternClient

/// The arguments of a command with the same action for each of several items: the account, the items, and the output
/// form.
struct NamedItems {
    let account: AccountOption
    let items: [ItemReference]
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        var items = [ItemReference(try arguments.word("the item"))]
        while let word = try arguments.optionalWord() { items.append(ItemReference(word)) }
        self.items = items
    }

    /// Finds all of them, before the action for the first.
    func find(in candidates: [ItemSummary]) throws(CommandFailure) -> [ItemSummary] {
        try items.map { item throws(CommandFailure) in try item.find(in: candidates) }
    }

    /// Prints the results: the ids as a member of an object, or a line for each.
    func show(_ done: [ItemSummary], as member: String, _ words: String, _ console: Console) throws {
        let ids = done.map(\.id.description)
        try console.show([member: ids], asJSON: asJSON) { ids.map { "\($0) \(words)\n" }.joined() }
    }
}

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
