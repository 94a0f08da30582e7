import CommandLineKit
import SalternClient

struct DeleteItems: Command {
    static let words = ["delete"]
    static let summary = "delete items"
    static let usage = ["ITEM… [OPTIONS]"]
    static let example = "saltern-client delete \"shopping list\""
    static let help = """
        \(OwnerOption.help)
          --json                one object, for scripts

        `saltern-client restore` restores deleted items for 30 days.
        \(ItemReference.help)
        """

    private let named: NamedItems

    init(_ arguments: inout Arguments) throws(UsageError) { named = try NamedItems(&arguments) }

    func run(_ console: Console) async throws {
        let items = try await named.owner.open(console).items
        // All items are found before the first is deleted.
        var found: [ItemSummary] = []
        for item in named.items { found.append(try await item.find(in: items)) }
        for item in found { try await items.delete(item.id) }
        try named.show(found, as: "deleted", "is deleted", console)
    }
}

struct RestoreItems: Command {
    static let words = ["restore"]
    static let summary = "restore deleted items or an earlier version"
    static let usage = ["ITEM… [OPTIONS]", "ITEM --version N [OPTIONS]"]
    static let example = "saltern-client restore \"shopping list\" --version 2"
    static let help = """
        \(OwnerOption.help)
          --version N           an earlier version, from `saltern-client versions ITEM`
          --json                one object, for scripts

        `saltern-client list --deleted` lists items that were deleted on this device, or
        that this device had, for 30 days. A restored version replaces the present one,
        which becomes an earlier version.
        \(ItemReference.help)
        """

    private let named: NamedItems
    private let version: Int?

    init(_ arguments: inout Arguments) throws(UsageError) {
        version = try arguments.integer("--version", in: 1...Int.max)
        named = try NamedItems(&arguments)
        if version != nil, named.items.count != 1 {
            throw UsageError(message: "--version belongs to one item")
        }
    }

    func run(_ console: Console) async throws {
        let items = try await named.owner.open(console).items
        var found: [ItemSummary]
        if let version {
            found = [try await ReplacedItems.find(named.items[0], in: items)]
            try await items.restore(found[0].id, replaced: Int64(version))
        } else {
            found = try named.find(in: await items.deletedItems())
            for item in found { try await items.restore(item.id) }
        }
        try named.show(found, as: "restored", "is restored", console)
    }
}

struct DiscardChanges: Command {
    static let words = ["discard"]
    static let summary = "discard unsent changes of items"
    static let usage = ["ITEM… [OPTIONS]"]
    static let example = "saltern-client discard \"shopping list\""
    static let help = """
        \(OwnerOption.help)
          --json                one object, for scripts

        For changes that the server rejects, such as content beyond the plan.
        `saltern-client status` names these items. The item gets the server's latest
        known version, or is removed if the server has none. The discarded content
        stays in `saltern-client list --deleted` for 30 days.
        \(ItemReference.help)
        """

    private let named: NamedItems

    init(_ arguments: inout Arguments) throws(UsageError) { named = try NamedItems(&arguments) }

    func run(_ console: Console) async throws {
        let items = try await named.owner.open(console).items
        let found = try named.find(in: await items.unsentItems(limit: .max))
        for item in found { try await items.discardChange(item.id) }
        try named.show(found, as: "discarded", "is discarded", console)
    }
}
