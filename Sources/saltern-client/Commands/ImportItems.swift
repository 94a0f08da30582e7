import CommandLineKit
import Foundation
import SalternClient

struct ImportItems: Command {
    static let words = ["import"]
    static let summary = "take the items of a file that export has written"
    static let help = """
        usage: saltern-client import FILE

        \(AccountOption.help)
        \(RateOption.help)
          --json                one object, for scripts

        Items keep their ids. What is here with another content stays, and the file's version is kept beside it. Importing
        twice is importing once; a file without its end, or with a line that is no document, is refused with the line's number, and
        nothing is changed. The file is UTF-8; empty lines are skipped. saltern-client sync sends what was imported;
        what is longer than 512 KiB is sent at once.

        A line is {"type":"document","id":…,"collection":…,"title":…,"text":…}, or "data" in base64 instead of "text", and
        "properties" where a file has some. The first is {"type":"documents","version":1}, the last {"type":"end","documents":N}.
        """

    private struct Record: Encodable {
        let created: Int
        let unchanged: Int
        let copies: Int
    }

    private let account: AccountOption
    private let file: URL
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(withRate: &arguments)
        file = URL(filePath: try arguments.word("the file"))
    }

    func run(_ console: Console) async throws {
        guard FileManager.default.isReadableFile(atPath: file.path) else {
            throw CommandFailure("cannot read \(file.path)", status: ExitStatus.notFound, code: "file_not_found")
        }
        let vault = try await account.open(console).vault
        let done = try await console.showingProgress(of: vault) { try await vault.importDocuments(from: file) }
        let record = Record(created: done.created, unchanged: done.unchanged, copies: done.copies)
        try console.show(record, asJSON: asJSON) {
            "\(record.created) new, \(record.unchanged) as they were, \(record.copies) kept beside another version\n"
        }
    }
}
