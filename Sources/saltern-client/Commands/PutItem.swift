import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct PutItem: Command {
    static let words = ["put"]
    static let summary = "write a new item, or replace the content of an item"
    static let usage = ["[FILE] [OPTIONS]"]
    static let example = "echo \"milk\" | saltern-client put --title \"shopping list\""
    static let help = """
        \(OwnerOption.help)
        \(RateOption.help)
          --item ITEM           the item to replace; without it, a new item
          --collection NAME     a-z, 0-9 and -; visible to the server (notes)
          --title TEXT          encrypted title for lists (the file's name)
          --allow-empty         replace an item with empty content
          --json                one object with the id, for scripts

        The content is FILE or standard input. It is encrypted and stored on disk when
        the command returns. The next `saltern-client sync` sends it. Other users of
        this machine can see TEXT in the list of processes: `saltern-client import`
        reads titles from a file. Earlier content is kept on this device for 30 days:
        see `saltern-client versions`.

        \(ItemReference.help)
        """

    private let owner: OwnerOption
    private let item: ItemReference?
    private let collection: String?
    private let title: String?
    private let file: String?
    private let allowsEmpty: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        allowsEmpty = arguments.flag("--allow-empty")
        item = try arguments.option("--item").map(ItemReference.init)
        collection = try CollectionOption.name(&arguments)
        title = try arguments.option("--title")
        owner = try OwnerOption(withRate: &arguments)
        file = try arguments.optionalWord()
    }

    func run(_ console: Console) async throws {
        // Before the store is opened, because standard input may take long.
        let content = try file.map(InputContent.file) ?? InputContent.standardInput()
        let items = try await owner.open(console).items
        let before = try await item?.find(in: items)
        if let before, content.source.byteCount == 0, before.byteCount != 0, !allowsEmpty {
            throw EmptyContent.refusal(file.map { VisibleText.visible($0) } ?? "standard input", over: before)
        }
        if !content.isWhole {
            try await items.refuseTooLong(bodyOf: content.source.byteCount)
            throw VaultError.unreadable
        }
        let title = title ?? before?.title ?? file.map { URL(filePath: $0).lastPathComponent }
        let body: SecureBytes
        if let before, let replaced = try await items.item(before.id)?.body {
            body = try await items.body(holding: content.source, insteadOf: replaced)
        } else {
            body = try await items.body(holding: content.source)
        }
        let id = try await items.put(
            PlainItem(title: title, body: body), before?.id ?? .random(),
            in: collection ?? before?.collection ?? "notes", over: nil)
        try console.show(["id": id.description], asJSON: asJSON) { "\(id)\n" }
    }
}

/// The input of a command: a file, or standard input.
struct InputContent {
    let source: AttachmentSource
    /// True when the source is complete. Of content that is longer than any item, it contains only the beginning.
    let isWhole: Bool

    /// Opens a file. A regular file is read on demand, any other one now.
    static func file(_ path: String) throws -> InputContent {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            if descriptor >= 0 { close(descriptor) }
            throw CommandFailure("cannot read \(path)", status: ExitStatus.notFound, code: "file_not_found")
        }
        defer { close(descriptor) }
        if status.st_mode & S_IFMT == S_IFREG {
            return InputContent(source: try AttachmentSource(file: URL(filePath: path)), isWhole: true)
        }
        return try read(descriptor, path)
    }

    static func standardInput() throws -> InputContent { try read(STDIN_FILENO, "standard input") }

    /// Reads to the end, or up to the length of the longest item.
    private static func read(_ descriptor: Int32, _ name: String) throws -> InputContent {
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        var pieces: [SecureBytes] = []
        var count = 0
        while count <= Vault.longestItemByteCount {
            guard var data = try? handle.read(upToCount: 256 << 10) ?? Data() else {
                throw SecretInput.unreadable("\(name) cannot be read")
            }
            if data.isEmpty { break }
            pieces.append(data.withUnsafeBytes { SecureBytes(copying: $0) })
            data.resetBytes(in: data.indices)
            count += data.count
        }
        return InputContent(
            source: AttachmentSource(SecureBytes(joining: pieces)), isWhole: count <= Vault.longestItemByteCount)
    }
}

/// Rejects empty content in place of an item's, which a command with failed input would write.
enum EmptyContent {
    static func refusal(_ source: String, over item: ItemSummary) -> CommandFailure {
        let size = item.byteCount.map { "the \($0) bytes of " } ?? ""
        return CommandFailure(
            "\(source) is empty, and would replace \(size)\(item.id); nothing was changed; --allow-empty replaces it",
            status: ExitStatus.unreadable, code: "empty_content")
    }
}
