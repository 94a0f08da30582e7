import CommandLineKit
import Foundation
import SalternClient

/// The arguments of a command for the trash of a folder.
struct TrashedFolder {
    private let owner: OwnerOption
    private let collection: String?
    let folder: String
    let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        collection = try CollectionOption.name(&arguments)
        owner = try OwnerOption(&arguments)
        folder = try arguments.word("the folder")
    }

    func open(_ console: Console) async throws -> FolderSync {
        let opened = try await owner.open(console)
        let root = URL(filePath: folder, directoryHint: .isDirectory)
        let name = collection ?? FolderSync.collection(of: root) ?? FolderSettings().collection
        return FolderSync(opened.items, root: root, settings: FolderSettings(collection: name))
    }
}

struct ListTrash: Command {
    static let words = ["trash"]
    static let summary = "list files that a sync has removed from a folder"
    static let usage = ["DIR [OPTIONS]"]
    static let example = "saltern-client trash ~/Notes"
    static let help = """
        \(OwnerOption.help)
          --collection NAME     the collection of the folder (the one it syncs with)
          --json                one object, for scripts

        .saltern/trash keeps files that other devices deleted, and versions that they
        replaced, for 30 days. `saltern-client trash restore DIR FILE` restores one.
        Files that were deleted in the folder itself are in the trash of the account:
        see `saltern-client list --deleted`, and `restore`.
        """

    private struct Record: Encodable {
        let name: String
        let path: String
        let bytes: Int64
        let day: String

        init(_ entry: TrashEntry) {
            name = entry.name
            path = entry.path.text
            bytes = entry.byteCount
            day = String(entry.day.shown.prefix(10))
        }
    }

    private struct List: Encodable {
        let files: [Record]
    }

    private let folder: TrashedFolder

    init(_ arguments: inout Arguments) throws(UsageError) { folder = try TrashedFolder(&arguments) }

    func run(_ console: Console) async throws {
        let records = try await folder.open(console).trash().map(Record.init)
        try console.show(List(files: records), asJSON: folder.asJSON) {
            var table = Table([.text("day"), .number("bytes"), .text("path"), .text("name")])
            for record in records { table.append([record.day, String(record.bytes), record.path, record.name]) }
            return table.takeText()
        }
    }
}

struct RestoreTrash: Command {
    static let words = ["trash", "restore"]
    static let summary = "restore files that a sync has removed"
    static let usage = ["DIR FILE… [OPTIONS]"]
    static let example = "saltern-client trash restore ~/Notes plan.txt"
    static let help = """
        \(OwnerOption.help)
          --collection NAME     the collection of the folder (the one it syncs with)
          --json                one object, for scripts

        FILE is a path in the folder, or a name from `saltern-client trash DIR` where
        several files had that path. All are found before the first one moves. If the
        path is in use, the restored file gets a name beside it. A file in place of the
        parent folder has the same effect. The next sync sends the restored files.
        """

    private struct Record: Encodable {
        let restored: [String]
    }

    private let folder: TrashedFolder
    private let files: [String]

    init(_ arguments: inout Arguments) throws(UsageError) {
        folder = try TrashedFolder(&arguments)
        var files = [try arguments.word("the file")]
        while let file = try arguments.optionalWord() { files.append(file) }
        self.files = files
    }

    func run(_ console: Console) async throws {
        let sync = try await folder.open(console)
        let entries = try await sync.trash()
        let byName = Dictionary(entries.map { ($0.name, $0) }) { first, _ in first }
        let byPath = Dictionary(grouping: entries, by: \.path)
        // All files are found before the first is moved, and a file that is named twice counts once.
        var names: [String] = []
        var named: Set<String> = []
        for file in files {
            let name = try Self.name(of: file, byName, byPath)
            if named.insert(name).inserted { names.append(name) }
        }
        var restored: [String] = []
        var failure: (any Error)?
        do {
            for name in names { restored.append(try await sync.restore(name).text) }
        } catch {
            failure = error
        }
        // Including the files before one that fails.
        if failure == nil || !restored.isEmpty {
            try console.show(Record(restored: restored), asJSON: folder.asJSON) {
                restored.map { "restored: \(VisibleText.visible($0))\n" }.joined()
            }
        }
        if let failure { throw failure }
    }

    private static func name(
        of file: String, _ byName: [String: TrashEntry], _ byPath: [FolderPath: [TrashEntry]]
    ) throws(CommandFailure) -> String {
        if let entry = byName[file] { return entry.name }
        let found = (try? FolderPath(file)).flatMap { byPath[$0] } ?? []
        guard let only = found.first else {
            throw CommandFailure(
                "the trash has no file \(VisibleText.visible(file))", status: ExitStatus.notFound, code: "not_found")
        }
        guard found.count == 1 else {
            throw CommandFailure(
                ["several files had the path \(VisibleText.visible(file)): give one of these names"]
                    + found.map { VisibleText.visible($0.name) }, status: ExitStatus.notFound, code: "several_files")
        }
        return only.name
    }
}
