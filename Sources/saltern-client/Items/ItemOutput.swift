import CommandLineKit
import Cryptography
import Foundation
import SalternClient

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
