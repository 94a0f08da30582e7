import CommandLineKit
import Cryptography
import Foundation
import SalternClient

struct EditItem: Command {
    static let words = ["edit"]
    static let summary = "edit an item with $VISUAL or $EDITOR"
    static let usage = ["ITEM [OPTIONS]"]
    static let example = "saltern-client edit \"shopping list\""
    static let help = """
        \(OwnerOption.help)
          --allow-empty         accept an empty file from the editor
          --json                one object, for scripts

        The editor opens a file in memory (XDG_RUNTIME_DIR or /dev/shm), in a directory
        that only you can enter. It is overwritten afterwards. Without such a place the
        command fails. Copies that the editor keeps, such as registers in ~/.viminfo,
        are not removed. An item has at most 64 MiB: use get and put for longer ones.

        A windowed editor must wait until its window is closed: EDITOR='code --wait'.
        If it ends at once without a change, the command waits for Enter at a terminal.

        If the item changes elsewhere meanwhile, both versions are kept. If the command
        is killed, saved text stays in that directory, and the next commands name it.
        The earlier content is kept on this device for 30 days: see `saltern-client
        versions`.
        \(ItemReference.help)
        """

    private struct Record: Encodable {
        let id: ItemID
        let changed: Bool
    }

    private let owner: OwnerOption
    private let item: ItemReference
    private let allowsEmpty: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        allowsEmpty = arguments.flag("--allow-empty")
        owner = try OwnerOption(&arguments)
        item = ItemReference(try arguments.word("the item"))
    }

    func run(_ console: Console) async throws {
        let editor = try Editor(console.environment)
        let original = try await read(console)
        let folder = try PrivateFolder(console.environment, of: original.account)
        do {
            let record = try await edit(original, editor, folder, console)
            folder.wipe()
            try console.show(record, asJSON: asJSON) { record.changed ? "\(record.id)\n" : "nothing was changed\n" }
        } catch let error as Unstored {
            // The user's text is kept, even if the folder then remains.
            throw CommandFailure(
                (error.reason as? CommandFailure ?? Explanation.explain(error.reason)
                    ?? CommandFailure("\(error.reason)")).messages
                    + ["your text is in \(folder.path)"], status: ExitStatus.store, code: "edit_not_stored")
        } catch {
            folder.wipe()
            throw error
        }
    }

    /// The edit could not be stored.
    private struct Unstored: Error { let reason: any Error }

    /// Edits the content. The store is closed while the editor is open, so that other processes can sync.
    private func edit(
        _ original: Original, _ editor: Editor, _ folder: PrivateFolder, _ console: Console
    ) async throws -> Record {
        let (found, before, content) = (original.summary, original.item, original.content)
        let file = try content.withUnsafeBytes { bytes throws(CommandFailure) in
            try folder.write(Self.fileName(before.title), bytes)
        }
        do {
            let start = ContinuousClock.now
            if let wish = console.wish {
                try await wish.ignoringKeyboard { try await editor.edit(file, in: folder) }
            } else {
                try await editor.edit(file, in: folder)
            }
            if ContinuousClock.now - start < Self.atOnce {
                try waitForWindow(of: file, content, console)
            }
        } catch {
            // The editor or this command was ended: saved changes are kept.
            let saved = Result { () throws(CommandFailure) in try Self.content(of: file) }
            if case .success(let saved) = saved, saved ?? content == content { throw error }
            throw Unstored(reason: error)
        }
        let body: SecureBytes
        do {
            guard let saved = try Self.content(of: file) else {
                throw CommandFailure(
                    "the editor has removed the file; nothing was changed", status: 1, code: "editor_failed")
            }
            body = saved
        } catch let error as CommandFailure where error.code == Self.code { throw Unstored(reason: error) }
        if body == content { return Record(id: found.id, changed: false) }
        if body.isEmpty, !allowsEmpty { throw EmptyContent.refusal("the edited file", over: found) }
        do {
            let items = try await owner.open(console).items
            let id = try await items.put(
                PlainItem(
                    title: before.title, body: try await items.body(holding: body, insteadOf: before.body)), found.id,
                in: found.collection, over: original.version)
            return Record(id: id, changed: true)
        } catch {
            throw Unstored(reason: error)
        }
    }

    /// The shortest time of an edit by a person.
    private static let atOnce = Duration.seconds(1)

    /// Waits for the user when an editor with a separate window has ended at once. Otherwise text that is typed in that
    /// window would be lost with the file.
    private func waitForWindow(of file: String, _ content: SecureBytes, _ console: Console) throws {
        guard try Self.content(of: file) == content else { return }
        let message = "the editor ended at once, and the file is unchanged"
        guard console.isTerminal else {
            return console.notice(
                "\(message): an editor with a separate window needs an option to wait, such as code --wait",
                code: "editor_ended_at_once")
        }
        console.draw("\(message). If it has a separate window, save there and close it, then press Enter: ")
        _ = console.answer()
    }

    /// The longest content, in bytes. The command needs several times as much memory.
    static let limit = 64 << 20
    private static let code = "too_long_to_edit"

    /// Returns the content of the edited file; nil if there is none.
    /// - Throws: ``CommandFailure`` with the code `too_long_to_edit`.
    static func content(of file: String, limit: Int = limit) throws(CommandFailure) -> SecureBytes? {
        var status = stat()
        if stat(file, &status) == 0 { try requireLength(Int64(status.st_size), "the edited file", limit) }
        guard var data = FileManager.default.contents(atPath: file) else { return nil }
        defer { data.resetBytes(in: data.indices) }
        return data.withUnsafeBytes { SecureBytes(copying: $0) }
    }

    private static func requireLength(_ count: Int64, _ name: String, _ limit: Int = limit) throws(CommandFailure) {
        guard count > limit else { return }
        throw CommandFailure(
            "\(name) has \(counted(Int(count), "byte")), and edit takes at most \(limit) bytes: use get and put instead",
            status: ExitStatus.unreadable, code: code)
    }

    /// The item before the edit.
    private struct Original {
        let account: URL
        let summary: ItemSummary
        let item: PlainItem
        let content: SecureBytes
        let version: ItemVersion?
    }

    private func read(_ console: Console) async throws -> Original {
        let opened = try await owner.open(console)
        let items = opened.items
        let found = try await item.find(in: items)
        guard let before = try await items.item(found.id) else { throw VaultError.notFound }
        try Self.requireLength(Attachment(before.body)?.byteCount ?? Int64(before.body.count), "the item")
        let version = try await items.version(of: found.id)
        return Original(
            account: opened.account.folder, summary: found, item: before,
            content: try await items.wholeContent(of: before.body), version: version)
    }

    /// Returns a file name whose extension shows the type to the editor.
    private static func fileName(_ title: String?) -> String {
        guard let title, let match = title.firstMatch(of: /\.([A-Za-z0-9]{1,8})$/) else { return "item.txt" }
        return "item.\(match.1)"
    }
}

/// The user's editor: `VISUAL`, or `EDITOR`.
struct Editor {
    private let command: String
    private let environment: [String: String]

    init(_ environment: [String: String]) throws(CommandFailure) {
        guard
            let command = [environment["VISUAL"], environment["EDITOR"]].compactMap(\.self).first(where: { !$0.isEmpty }
            )
        else {
            throw CommandFailure(
                "neither VISUAL nor EDITOR is set", status: ExitStatus.configuration, code: "no_editor")
        }
        self.command = command
        self.environment = environment
    }

    /// Edits a file. The editor's own temporary files go beside it.
    /// - Throws: ``CommandFailure`` when the editor fails, `CancellationError` when the process has to end.
    func edit(_ file: String, in folder: PrivateFolder) async throws {
        var environment = environment
        environment["TMPDIR"] = folder.path
        let editor = try start(["/bin/sh", "-c", command + " \"$1\"", "sh", file], environment)
        // A separate thread waits, because the editor may be open for hours.
        let status = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: editor.wait()) }
            }
        } onCancel: {
            editor.send(SIGTERM)
        }
        if Task.isCancelled { throw CancellationError() }
        guard status == 0 else {
            throw CommandFailure("the editor failed; the item was not changed", status: 1, code: "editor_failed")
        }
    }

    private func start(_ words: [String], _ environment: [String: String]) throws(CommandFailure) -> ChildProcess {
        do throws(CommandFailure) {
            return try ChildProcess(words, environment: environment)
        } catch {
            throw CommandFailure("the editor cannot be started", status: 1, code: "editor_failed")
        }
    }
}
