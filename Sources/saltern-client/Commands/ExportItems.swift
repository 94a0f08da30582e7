import CommandLineKit
import Foundation
import SalternClient

struct ExportItems: Command {
    static let words = ["export"]
    static let summary = "export all items to a file"
    static let usage = ["FILE [--collection NAME] [OPTIONS]", "FILE --sealed [OPTIONS]"]
    static let example = "saltern-client export notes.jsonl --collection notes"
    static let help = """
        \(OwnerOption.help)
        \(RateOption.help)
          --collection NAME     only the items of one collection
          --sealed              all data that the server stores of the account,
                                encrypted; needs the password
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
    }

    private let proof: ProvenCommand
    private let owner: OwnerOption
    private let collection: String?
    private let isSealed: Bool
    private let file: URL

    init(_ arguments: inout Arguments) throws(UsageError) {
        isSealed = arguments.flag("--sealed")
        collection = try arguments.option("--collection")
        proof = try ProvenCommand(withRate: &arguments)
        owner = try OwnerOption(of: proof.account, &arguments)
        file = URL(filePath: try arguments.word("the file"))
        if isSealed, collection != nil || owner.isVault {
            throw UsageError(message: "--collection and --vault do not belong to --sealed")
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
        let done = try await console.showingProgress(of: opened.account.vault) {
            try await opened.items.exportDocuments(to: file, collection: collection)
        }
        let record = Record(documents: done.documents, unreadable: done.unreadable, incomplete: done.incomplete)
        try console.show(record, asJSON: proof.asJSON) {
            "\(counted(done.documents, "item is", "items are")) in \(VisibleText.visible(file.path)), unencrypted\n"
                + done.unreadable.map { "\($0) cannot be read and is not included\n" }.joined()
                + done.incomplete.map { "\($0) is included without the content of its attachments\n" }.joined()
        }
        if !done.unreadable.isEmpty || !done.incomplete.isEmpty {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }
}
