import CommandLineKit
import Foundation
import SalternClient

struct ExportItems: Command {
    static let words = ["export"]
    static let summary = "export all items to a file"
    static let usage = [
        "FILE [--collection NAME] [OPTIONS]", "FOLDER --all-vaults [OPTIONS]", "FILE --sealed [OPTIONS]",
    ]
    static let example = "saltern-client export notes.jsonl --collection notes"
    static let help = """
        \(OwnerOption.help)
        \(RateOption.help)
          --collection NAME     only the items of one collection
          --all-vaults          a new folder, with a file for the account and one for
                                each shared vault
          --sealed              all data that the server stores of the account,
                                encrypted, with its own shared vaults; needs the
                                password
        \(PasswordOption.help)
          --json                one object, for scripts

        Without --sealed the file contains every item in plaintext, one JSON object per
        line, for `saltern-client import`. Unreadable items are named and left out, with
        exit status 2; --sealed contains them. Items of apps with attachments in their
        values are named, too: the file lacks the content of those attachments. Sync
        first: only long files are fetched. FILE must not exist, and only you can read
        it.
        """

    private struct Record: Encodable {
        let documents: Int
        let unreadable: [ItemID]
        /// The items whose attachments are not in the file.
        let incomplete: [ItemID]

        init(_ export: DocumentExport) {
            documents = export.documents
            unreadable = export.unreadable
            incomplete = export.incomplete
        }

        var isComplete: Bool { unreadable.isEmpty && incomplete.isEmpty }

        /// The lines for the user.
        func lines(_ file: String) -> String {
            "\(counted(documents, "item is", "items are")) in \(VisibleText.visible(file)), unencrypted\n"
                + unreadable.map { "\($0) cannot be read and is not included\n" }.joined()
                + incomplete.map { "\($0) is included without the content of its attachments\n" }.joined()
        }
    }

    /// A file of an export of all vaults.
    private struct FileRecord: Encodable {
        let file: String
        /// Nil for the account.
        let vault: SharedVaultID?
        let name: String?
        let items: Record
    }

    private let proof: ProvenCommand
    private let owner: OwnerOption
    private let collection: String?
    private let isSealed: Bool
    private let hasAllVaults: Bool
    private let file: URL

    init(_ arguments: inout Arguments) throws(UsageError) {
        isSealed = arguments.flag("--sealed")
        hasAllVaults = arguments.flag("--all-vaults")
        collection = try arguments.option("--collection")
        proof = try ProvenCommand(withRate: &arguments)
        owner = try OwnerOption(of: proof.account, &arguments)
        file = URL(filePath: try arguments.word("the file"))
        if isSealed, collection != nil || owner.isVault {
            throw UsageError(message: "--collection and --vault do not belong to --sealed")
        }
        if hasAllVaults, isSealed || owner.isVault {
            throw UsageError(message: "--sealed and --vault do not belong to --all-vaults")
        }
    }

    func run(_ console: Console) async throws {
        if FileManager.default.fileExists(atPath: file.path) {
            throw CommandFailure("\(file.path) exists already", status: ExitStatus.exists, code: "file_exists")
        }
        if isSealed {
            try await proof.withAccount(console) { account, password in
                try await console.showingProgress(of: account.vault) {
                    try await account.vault.export(to: file, password: password)
                }
            }
            return try console.show(["file": file.path], asJSON: proof.asJSON) {
                "all data is in \(VisibleText.visible(file.path))\n"
            }
        }
        let opened = try await owner.open(console)
        if hasAllVaults { return try await exportAll(opened.account, console) }
        let record = Record(
            try await console.showingProgress(of: opened.account.vault) {
                try await opened.items.exportDocuments(to: file, collection: collection)
            })
        try console.show(record, asJSON: proof.asJSON) { record.lines(file.path) }
        if !record.isComplete { throw CommandFailure([], status: ExitStatus.attention, code: "attention") }
    }

    /// Writes a file for the account and one for each shared vault, in a new folder. After an error there is no folder.
    private func exportAll(_ account: OpenAccount, _ console: Console) async throws {
        let vaults = try await account.vault.shared.all()
        do {
            try FileManager.default.createDirectory(
                at: file, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        } catch {
            throw CommandFailure(
                "cannot make the folder \(file.path)", status: ExitStatus.store, code: "store_unusable")
        }
        var records: [FileRecord] = []
        do {
            for shared in [nil] + vaults.map(Optional.some) {
                let items = shared.map { $0.items(in: account.vault) } ?? OwnedItems(account.vault)
                let target = file.appending(path: "\(shared?.id.description ?? "account").jsonl")
                let done = try await console.showingProgress(of: account.vault) {
                    try await items.exportDocuments(to: target, collection: collection)
                }
                records.append(
                    FileRecord(file: target.path, vault: shared?.id, name: shared?.name, items: Record(done)))
            }
        } catch {
            try? FileManager.default.removeItem(at: file)
            throw error
        }
        try console.show(["files": records], asJSON: proof.asJSON) {
            records.map { record in
                (record.name.map { "\(VisibleText.visible($0)): " } ?? "") + record.items.lines(record.file)
            }.joined()
        }
        if !records.allSatisfy(\.items.isComplete) {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }
}

struct ImportItems: Command {
    static let words = ["import"]
    static let summary = "import the items of an exported file"
    static let usage = ["FILE [OPTIONS]"]
    static let example = "saltern-client import notes.jsonl"
    static let help = """
        \(OwnerOption.help)
        \(RateOption.help)
          --json                one object, for scripts

        Items keep their ids. A local item with other content stays, and the file's
        version is kept beside it. A second import of the same file changes nothing. A
        file without its last line, or with an invalid line, is rejected with the line
        number, and nothing changes. The file is UTF-8. Empty lines are skipped.
        `saltern-client sync` sends the imported items. Content above 512 KiB is sent
        at once.

        A line is {"type":"document","id":…,"collection":…,"title":…,"text":…}, with
        "data" in base64 instead of "text" for bytes, and "properties" for a file's
        properties. The first line is {"type":"documents","version":1}, the last
        {"type":"end","documents":N}.
        """

    private struct Record: Encodable {
        let created: Int
        let unchanged: Int
        let copies: Int
    }

    private let owner: OwnerOption
    private let file: URL
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        owner = try OwnerOption(withRate: &arguments)
        file = URL(filePath: try arguments.word("the file"))
    }

    func run(_ console: Console) async throws {
        guard FileManager.default.isReadableFile(atPath: file.path) else {
            throw CommandFailure("cannot read \(file.path)", status: ExitStatus.notFound, code: "file_not_found")
        }
        let opened = try await owner.open(console)
        let done = try await console.showingProgress(of: opened.account.vault) {
            try await opened.items.importDocuments(from: file)
        }
        let record = Record(created: done.created, unchanged: done.unchanged, copies: done.copies)
        try console.show(record, asJSON: asJSON) {
            "\(record.created) new, \(record.unchanged) unchanged, \(record.copies) kept beside another version\n"
        }
    }
}
