import CommandLineKit
import SalternClient

/// The arguments of a command with the same action for each of several items: their owner, the items, and the output
/// form.
struct NamedItems {
    let owner: OwnerOption
    let items: [ItemReference]
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        owner = try OwnerOption(&arguments)
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

    /// Finds the one matching item of an owner.
    func find(in items: OwnedItems) async throws -> ItemSummary {
        if let id = ItemID(text), let item = try await items.summary(of: id) { return item }
        return try find(in: await items.items(in: nil))
    }

    /// Finds the one matching item.
    /// - Throws: ``CommandFailure`` when there is none, or several.
    func find(in items: [ItemSummary]) throws(CommandFailure) -> ItemSummary {
        try NameMatch.only(
            text, among: items, noun: ("item", "items"), id: { $0.id.description }, name: { $0.title })
    }
}

/// The choice of one object by its id, the first characters of it (at least four), or its name.
enum NameMatch {
    /// Returns the one candidate that `text` names.
    /// - Parameters:
    ///   - noun: The kind of object for messages, with its plural.
    ///   - isNamedByOthers: True when a name that is the beginning of another candidate's id must not win.
    /// - Throws: ``CommandFailure`` when there is none, or several.
    static func only<Candidate>(
        _ text: String, among candidates: [Candidate], noun: (one: String, several: String),
        id: (Candidate) -> String, name: (Candidate) -> String?, isNamedByOthers: Bool = false
    ) throws(CommandFailure) -> Candidate {
        let lower = text.lowercased()
        var found = candidates.filter { id($0) == lower }
        // Byte by byte first: `String` considers canonically equivalent names equal, and a keyboard may write either
        // form.
        if found.isEmpty { found = candidates.filter { name($0).map { Array($0.utf8) } == Array(text.utf8) } }
        if found.isEmpty { found = candidates.filter { name($0) == text } }
        if text.utf8.count >= 4, found.isEmpty || isNamedByOthers {
            let known = Set(found.map(id))
            found += candidates.filter { id($0).hasPrefix(lower) && !known.contains(id($0)) }
        }
        guard let only = found.first else {
            throw CommandFailure(
                "there is no \(noun.one) \(VisibleText.visible(text))", status: ExitStatus.notFound, code: "not_found")
        }
        guard found.count == 1 else {
            throw CommandFailure(
                ["\(VisibleText.visible(text)) is several \(noun.several):"] + found.map(id),
                status: ExitStatus.notFound, code: "ambiguous")
        }
        return only
    }
}

/// `--collection NAME`, for a command that writes items.
enum CollectionOption {
    /// Parses the option.
    /// - Returns: nil when it was not given.
    static func name(_ arguments: inout Arguments) throws(UsageError) -> String? {
        guard let name = try arguments.option("--collection") else { return nil }
        guard name.wholeMatch(of: /[a-z0-9-]{1,32}/) != nil else {
            throw UsageError(message: "--collection must be 1 to 32 of a-z, 0-9 and -")
        }
        guard name != Attachment.chunkCollection else {
            throw UsageError(message: "--collection \(name) is reserved for chunks of attachments")
        }
        return name
    }
}
