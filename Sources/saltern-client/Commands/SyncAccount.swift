import CommandLineKit
import Foundation
import SalternClient

struct SyncAccount: Command {
    static let words = ["sync"]
    static let summary = "send what was changed here, fetch what was changed elsewhere"
    static let help = """
          DIR…                  a folder of files, kept the same as a collection on all devices; several: one after another,
                                and with --watch all of them; none: the items alone. When one of several fails, the others
                                are synced: the error names the folder, and the exit status is that of the most serious error
        \(AccountOption.help)
        \(RateOption.help)
          --collection NAME     the collection of the folder's files (files); without DIR: that of --allow-deletions
          --watch               go on until Ctrl-C: whatever changes in the folder or elsewhere; other commands of the
                                account can be used meanwhile
          --dry-run             with DIR: only print the names of what would be sent, fetched, renamed, deleted or kept
                                twice, and of what is ignored; nothing is changed, neither here nor on the server
          --allow-deletions     also when many items were deleted elsewhere, or many files here, at once: with DIR those of
                                its collection, in both directions; with --watch those of its first round
          --allow-deletions-here, --allow-deletions-there
                                with DIR in one direction: of files that were deleted elsewhere, or that are missing here
          --allow-hidden-executables
                                with DIR: also executable files of other devices beneath names with a leading dot, such as
                                .git/hooks, which other programs run by themselves
          --second-folder       with DIR: also when another folder of this device is in sync with the collection; both
                                get all files
          --json                one object, for scripts; with DIR one for each folder, and with --watch one for each round of
                                it: the member folder is DIR as you give it

        A file .salternignore in DIR or a folder in it names what stays out of the sync there, in the syntax of .gitignore:
        it is neither sent nor fetched, and deleted nowhere; the same applies to an empty folder that it names. The file itself
        is synced.

        What was changed on two devices is kept twice, what a folder loses is in .saltern/trash for 30 days, and deletions of
        many items within an hour wait for --allow-deletions, with their names; all that is no deletion goes on. Then it ends
        with status 2; saltern-client status says it again. A file that is emptied counts as deleted. Where .saltern itself is
        missing, as where a disk is not there, nothing is deleted, and --allow-deletions fills the folder anew. Ctrl-C stops it
        where nothing is lost; the next time it goes on from there.
        """

    private struct Record: Encodable {
        let findings: Findings

        private enum CodingKeys: CodingKey {
            case fetched, sent, changed
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(findings.report.fetched, forKey: .fetched)
            try container.encode(findings.report.sent, forKey: .sent)
            try container.encode(findings.report.changed.sorted(), forKey: .changed)
            try findings.encode(to: encoder)
        }
    }

    private let account: AccountOption
    private let allowed: Set<DeletionDirection>
    private let watches: Bool
    private let isDry: Bool
    private let allowsSecondFolder: Bool
    private let allowsHiddenExecutables: Bool
    private let collection: String?
    private let folders: [String]
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        var allowed: Set<DeletionDirection> = []
        if arguments.flag("--allow-deletions") { allowed = Set(DeletionDirection.allCases) }
        var hasDirection = false
        for direction in DeletionDirection.allCases
        where arguments.flag("--allow-deletions-\(direction.rawValue)") {
            allowed.insert(direction)
            hasDirection = true
        }
        self.allowed = allowed
        watches = arguments.flag("--watch")
        isDry = arguments.flag("--dry-run")
        allowsSecondFolder = arguments.flag("--second-folder")
        allowsHiddenExecutables = arguments.flag("--allow-hidden-executables")
        collection = try CollectionOption.name(&arguments)
        account = try AccountOption(withRate: &arguments)
        var folders: [String] = []
        while let folder = try arguments.optionalWord() { folders.append(folder) }
        self.folders = folders
        if watches, isDry { throw UsageError(message: "--dry-run is about one round: leave --watch away") }
        let isForFolder =
            watches || isDry || hasDirection || allowsHiddenExecutables || allowsSecondFolder
            || collection != nil && allowed.isEmpty
        if folders.isEmpty, isForFolder {
            throw UsageError(
                message:
                    "--watch, --dry-run, --collection, --allow-hidden-executables and the directions of deletions are about a "
                    + "folder: sync DIR")
        }
    }

    func run(_ console: Console) async throws {
        let account = try await account.open(console)
        let vault = account.vault
        if !folders.isEmpty {
            let syncs = folders.map { folder in
                // Of several folders each may have a collection of its own, which its marker names.
                let marked = folders.count > 1 ? FolderSync.collection(of: URL(filePath: folder)) : nil
                var settings = FolderSettings(
                    collection: collection ?? marked ?? FolderSettings().collection,
                    deviceName: account.profile.deviceName)
                settings.allowedDeletions = allowed
                settings.allowsHiddenExecutables = allowsHiddenExecutables
                settings.allowsSecondFolder = allowsSecondFolder
                settings.lendsStore = watches
                return SyncFolder(
                    folder: folder, settings: settings, watches: watches, isDry: isDry, asJSON: asJSON,
                    isOneOfSeveral: folders.count > 1)
            }
            return try await SyncFolder.run(syncs, account, console)
        }
        let findings = try await Findings.gather(in: vault, except: vault.notices()) {
            try await console.showingProgress(of: vault) {
                allowed.isEmpty ? try await vault.sync() : try await vault.agreeToDeletions(in: collection)
            }
        }
        // Not what was asked for: without it the next time will do.
        try? await account.learnPins()
        try console.show(Record(findings: findings), asJSON: asJSON) {
            "fetched \(findings.report.fetched), sent \(findings.report.sent), not sent \(findings.unsent)\n"
                + findings.lines
        }
        try findings.end()
    }
}
