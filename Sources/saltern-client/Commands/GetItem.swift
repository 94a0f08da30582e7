import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct GetItem: Command {
    static let words = ["get"]
    static let summary = "print an item, or write it to a file"
    static let usage = ["ITEM [OPTIONS]"]
    static let example = "saltern-client get \"shopping list\" --output list.txt"
    static let help = """
        \(OwnerOption.help)
        \(RateOption.help)
          --output FILE         a new file that only you can read
          --version N           an earlier version, from `saltern-client versions ITEM`
          --deleted             a deleted item, from `saltern-client list --deleted`
          --json                one object with id, collection, title, and text or data
                                (base64)

        Long content is fetched and written in parts. After an error the output contains
        the first parts. With --output these stay in .saltern-ID.part beside FILE, and
        the same command resumes. FILE appears when it is complete.
        \(ItemReference.help)
        """

    private let owner: OwnerOption
    private let output: String?
    private let version: Int?
    private let isDeleted: Bool
    private let asJSON: Bool
    private let item: ItemReference

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        version = try arguments.integer("--version", in: 1...Int.max)
        isDeleted = arguments.flag("--deleted")
        output = try arguments.option("--output")
        owner = try OwnerOption(withRate: &arguments)
        item = ItemReference(try arguments.word("the item"))
        if isDeleted, version != nil { throw UsageError(message: "--deleted and --version exclude each other") }
    }

    func run(_ console: Console) async throws {
        let items = try await owner.open(console).items
        let (found, body) = try await item(in: items)
        let content = ItemOutput(item: found, pieces: ContentPieces(of: body, in: items))
        if let output {
            try await content.write(to: output)
            if asJSON { try console.printJSON(["id": found.id.description, "file": output]) }
        } else if asJSON {
            try await content.printJSON(console)
        } else {
            try await content.print(console)
        }
    }

    private func item(in items: OwnedItems) async throws -> (ItemSummary, SecureBytes) {
        if let version {
            let found = try await ReplacedItems.find(item, in: items)
            let replaced = try await items.item(found.id, replaced: Int64(version))
            return (found.replaced(by: replaced), replaced.body)
        }
        if isDeleted {
            let found = try item.find(in: await items.deletedItems())
            return (found, try await items.deletedItem(found.id).body)
        }
        let found = try await item.find(in: items)
        guard let body = try await items.item(found.id)?.body else { throw VaultError.notFound }
        return (found, body)
    }
}

extension ItemSummary {
    /// The same item with another version's title.
    fileprivate func replaced(by version: PlainItem) -> ItemSummary {
        ItemSummary(
            id: id, collection: collection, title: version.title, byteCount: version.body.count, isUnsent: false)
    }
}

/// The output of an item's content, piece by piece.
struct ItemOutput {
    let item: ItemSummary
    let pieces: ContentPieces

    /// Prints the content unchanged.
    func print(_ console: Console) async throws {
        var rest: [UInt8] = []
        for index in 0..<pieces.count {
            let piece = try await pieces.piece(index)
            let bytes = rest + piece.withUnsafeBytes { [UInt8]($0) }
            // A terminal receives only complete characters.
            let end = console.isOutputTerminal && index + 1 < pieces.count ? Self.lastCharacterEnd(bytes) : bytes.count
            console.writeContent(Array(bytes[..<end]))
            rest = Array(bytes[end...])
            if console.hasLostOutput { return }
        }
    }

    /// Returns the end of the last complete UTF-8 character.
    private static func lastCharacterEnd(_ bytes: [UInt8]) -> Int {
        for count in 1...3 where count <= bytes.count {
            let byte = bytes[bytes.count - count]
            if byte & 0b1100_0000 == 0b1100_0000 { return bytes.count - count }
            if byte < 0b1000_0000 { break }
        }
        return bytes.count
    }

    /// Prints the item as one object. Long content is read twice, first to determine if it is text.
    func printJSON(_ console: Console) async throws {
        guard pieces.count > 1 else { return try console.printJSON(ItemRecord(item, try await pieces.piece(0))) }
        let form: JSONContent.Form = try await pieces.isText() ? .text : .data
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json = Array(try encoder.encode(ItemRecord(item, empty: form)))
        guard let parts = JSONContent.split(json, at: form) else { throw VaultError.unreadable }
        var content = JSONContent(form)
        console.writeJSON(parts.head)
        for index in 0..<pieces.count {
            // Content that is text above is text here, because each piece was verified.
            guard let characters = content.append(try await pieces.piece(index)) else { throw VaultError.unreadable }
            console.writeJSON(characters)
            if console.hasLostOutput { return }
        }
        guard let last = content.end() else { throw VaultError.unreadable }
        console.writeJSON(last + parts.tail + [UInt8(ascii: "\n")])
    }

    /// Writes the content to a new file. Fetched content continues the remaining file of an earlier command.
    func write(to path: String) async throws {
        if pieces.isFetched { try await fetch(to: path) } else { try await writeWhole(to: path) }
    }

    private func writeWhole(to path: String) async throws {
        try Self.create(path, with: try await pieces.whole())
    }

    // Inlined into an async function it crashes the optimiser of Swift 6.3.1.
    @inline(never)
    private static func create(_ path: String, with content: SecureBytes) throws {
        try PrivateFile.create(path, with: content.withUnsafeBytes { Data($0) })
    }

    private func fetch(to path: String) async throws {
        try PrivateFile.refuseExisting(path)
        let part = try PartialFile(of: item.id, for: path)
        do {
            try await fetch(into: part)
        } catch {
            throw Self.failure(error, leaving: part)
        }
        try part.finish()
    }

    private func fetch(into part: PartialFile) async throws {
        let first = try await pieces.fetchedPieces(in: part.source)
        try part.truncate(to: pieces.offset(of: first))
        for index in first..<pieces.count { try Self.append(try await pieces.piece(index), to: part) }
    }

    private static func append(_ piece: SecureBytes, to part: PartialFile) throws {
        try piece.withUnsafeBytes { bytes in try part.append(bytes) }
    }

    /// Returns the error of a command. Arrived bytes are kept, and unusable ones removed.
    private static func failure(_ error: any Error, leaving part: PartialFile) -> any Error {
        if case VaultError.unreadable = error { try? part.truncate(to: 0) }
        part.removeIfEmpty()
        guard !part.isEmpty, let failure = error as? CommandFailure ?? Explanation.explain(error) else { return error }
        return CommandFailure(
            failure.messages + ["the received part is in \(part.path); the same command continues from there"],
            status: failure.status, code: failure.code)
    }
}
