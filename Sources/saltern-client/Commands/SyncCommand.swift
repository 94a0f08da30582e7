import CommandLineKit
import Foundation
import SalternClient

struct SyncCommand: Command {
    static let words = ["sync"]
    static let summary = "send local changes and fetch remote changes"
    static let usage = ["[DIR…] [OPTIONS]"]
    static let example = "saltern-client sync ~/Notes --watch"
    static let help = """
          DIR…                  folders to keep equal to a collection on all devices;
                                without DIR, only items are synced
        \(AccountOption.help)
          --vault NAME          with DIR: the files of a shared vault in place of the
                                account's; without DIR, its --allow-deletions
        \(RateOption.help)
          --collection NAME     the collection of the folder's files (files); without
                                DIR, the collection of --allow-deletions
          --watch               continues until Ctrl-C with each change of the folders
                                or of other devices
          --dry-run             with DIR: only prints the names of files that would be
                                sent, fetched, renamed, deleted, kept twice or ignored;
                                changes nothing
          --allow-deletions     carries out many deletions at once; with DIR those of
                                its collection, in both directions; with --watch those
                                of its first round
          --allow-deletions-here, --allow-deletions-there
                                with DIR in one direction: files that other devices
                                deleted, or that are missing here
          --allow-hidden-executables
                                with DIR: also executable files of other devices below
                                hidden names, such as .git/hooks
          --second-folder       with DIR: also if another folder of this device syncs
                                with the collection; both get all files
          --json                one object, for scripts; with DIR one per folder, and
                                with --watch one per round; its member folder is DIR

        Several folders are synced one after another, and with --watch all at once. If
        one fails, the others are synced. The error names the folder, and the exit
        status is that of the most serious error. Other commands of the account work
        beside --watch.

        Files .salternignore in DIR or its folders name what is not synced, in the
        syntax of .gitignore. Ignored files are neither sent, fetched nor deleted. The
        file .salternignore itself is synced.

        Without DIR, the account and all shared vaults are synced. An error of one of
        them does not stop the others; in JSON output it is the member error of the
        vault. In the folder of a shared vault, a conflict copy has the name of the
        person that wrote it.

        A file that changed on two devices is kept twice. Files that a sync removes from
        a folder stay in .saltern/trash for 30 days. Many deletions within an hour wait
        for --allow-deletions: their names are listed, everything else is synced, and
        the exit status is 2. An emptied file counts as deleted. If .saltern is missing,
        for example because a disk is not mounted, nothing is deleted; --allow-deletions
        then fills the folder again. After Ctrl-C the next sync resumes without loss.
        """

    private struct Record: Encodable {
        let findings: SyncFindings

        private enum CodingKeys: CodingKey {
            case fetched, sent, changed, vaults
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            let report = findings.account.report
            try container.encode(report.fetched, forKey: .fetched)
            try container.encode(report.sent, forKey: .sent)
            try container.encode(report.changed.sorted(), forKey: .changed)
            try container.encode(findings.vaults, forKey: .vaults)
            try findings.account.encode(to: encoder)
        }
    }

    private let owner: OwnerOption
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
        owner = try OwnerOption(withRate: &arguments)
        var folders: [String] = []
        while let folder = try arguments.optionalWord() { folders.append(folder) }
        self.folders = folders
        if watches, isDry { throw UsageError(message: "--dry-run and --watch exclude each other") }
        let isForFolder =
            watches || isDry || hasDirection || allowsHiddenExecutables || allowsSecondFolder
            || (owner.isVault || collection != nil) && allowed.isEmpty
        if folders.isEmpty, isForFolder {
            throw UsageError(
                message:
                    "--watch, --dry-run, --vault, --collection, --allow-hidden-executables and the directions of deletions "
                    + "need a folder: sync DIR")
        }
    }

    func run(_ console: Console) async throws {
        let opened = try await owner.open(console)
        let (account, vault) = (opened.account, opened.account.vault)
        if !folders.isEmpty {
            let syncs = folders.map { folder in
                // Each of several folders may have a separate collection, which its marker names.
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
            return try await SyncFolder.run(syncs, opened, console)
        }
        let findings = try await SyncFindings.gather(in: vault, except: vault.notices()) {
            try await console.showingProgress(of: vault) {
                allowed.isEmpty
                    ? try await vault.sync() : try await opened.items.syncAll(agreeingToDeletionsIn: collection)
            }
        }
        // An error here does not fail the command: the next call repeats it.
        try? await account.learnPins()
        try console.show(Record(findings: findings), asJSON: asJSON) {
            let report = findings.account.report
            let counts = "fetched \(report.fetched), sent \(report.sent), not sent \(findings.account.unsent)\n"
            return counts + findings.lines
        }
        try findings.end()
    }
}
