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
