import CommandLineKit
import SalternClient

struct SyncAccount: Command {
    static let words = ["sync"]
    static let summary = "send what was changed here, fetch what was changed elsewhere"
    static let help = """
          DIR                   a folder of files, kept the same as a collection on all devices; none: the items alone
        \(AccountOption.help)
          --collection NAME     the collection of the folder's files (files)
          --watch               go on until Ctrl-C: whatever changes in the folder or elsewhere
          --allow-deletions     also when many items were deleted elsewhere, or many files here, at once
          --json                one object, for scripts

        What was changed on two devices is kept twice, what a folder loses is in .saltern/trash for 30 days, and deletions of many items at once wait for --allow-deletions: then it
        ends with status 2 and says what to look at; saltern-client status says it again. Ctrl-C stops it where nothing is
        lost; the next time it goes on from there.
        """

    private struct Record: Encodable {
        let fetched: Int
        let sent: Int
        let changed: [ItemID]
        let removed: [ItemID]
        let unsent: Int
        let deletionsHeld: Bool
        let notices: [NoticeRecord]
    }

    private let account: AccountOption
    private let allowsDeletions: Bool
    private let watches: Bool
    private let collection: String?
    private let folder: String?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        allowsDeletions = arguments.flag("--allow-deletions")
        watches = arguments.flag("--watch")
        collection = try arguments.option("--collection")
        account = try AccountOption(&arguments)
        folder = arguments.optionalWord()
        if folder == nil, watches || collection != nil {
            throw UsageError(message: "--watch and --collection are about a folder: sync DIR")
        }
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let vault = account.vault
        if let folder {
            let settings = FolderSettings(
                collection: collection ?? FolderSettings().collection, allowsDeletions: allowsDeletions,
                deviceName: account.profile.deviceName)
            return try await SyncFolder(folder: folder, settings: settings, watches: watches, asJSON: asJSON)
                .run(account, console)
        }
        let known = Set(try await vault.notices().map(\.number))
        let report = try await console.showingProgress(of: vault) {
            allowsDeletions ? try await vault.agreeToDeletions() : try await vault.sync()
        }
        // Not what was asked for: without it the next time will do.
        try? await account.learnPins()
        let notices = try await vault.notices().filter { !known.contains($0.number) }
        let record = Record(
            fetched: report.fetched, sent: report.sent, changed: report.changed.sorted(),
            removed: report.removed.sorted(), unsent: try await vault.unsentCount(), deletionsHeld: report.isHeld,
            notices: notices.map(NoticeRecord.init))
        try console.show(record, asJSON: asJSON) {
            "fetched \(record.fetched), sent \(record.sent), not sent \(record.unsent)\n"
                + notices.map { "\($0.text)\n" }.joined()
        }
        if report.isHeld || record.unsent > 0 || !notices.isEmpty {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }
}
