import CommandLineKit
import Foundation
import SalternClient

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
