import CommandLineKit
import Foundation
import SalternClient
import Synchronization

/// `saltern-client sync DIR`: a folder of files and a collection of the account or of a shared vault, once or until
/// Ctrl-C.
struct SyncFolder {
    /// One round, for scripts.
    private struct Record: Encodable {
        struct Warning: Encodable {
            let kind: String
            let path: String
            /// The exceeded limit, for a file for which the plan has no room.
            let limit: String?
            let needed: Int64?
            let free: Int64?
            /// The kernel's error.
            let errno: Int32?
            let reason: String?
            /// For an ignore file that cannot be applied: the reason, and the line.
            let fault: String?
            let line: Int?
            /// True when an earlier round has reported it.
            let known: Bool

            init(_ warning: FolderWarning) {
                kind = warning.kind.rawValue
                path = warning.path
                limit = warning.shortage?.limit.rawValue
                needed = warning.shortage?.needed
                free = warning.shortage?.free
                errno = warning.failure?.number
                reason = warning.failure?.reason
                fault = warning.ignoreFault?.reason.rawValue
                line = warning.ignoreFault?.line
                known = warning.isRepeated
            }
        }

        /// The folder, in the form of the command line.
        let folder: String
        let downloaded: [String]
        let uploaded: [String]
        let renamed: [String]
        let deletedHere: [String]
        let deletedThere: [String]
        let conflicts: [String]
        let heldHere: Int
        let heldThere: Int
        /// The names of those files.
        let heldHereFiles: [String]
        let heldThereFiles: [String]
        let deletionsHeld: Bool
        /// The account's items that other devices have deleted and that wait, in this collection or another.
        let heldItems: [HeldItem]
        let removed: [ItemID]
        let unsent: Int
        let offline: Bool
        let warnings: [Warning]
        let notices: [NoticeRecord]
        /// True for a simulation.
        let dryRun: Bool
        /// The entries that the ignore files exclude; only for a dry run.
        let ignored: [String]?

        init(
            _ folder: String, _ report: FolderReport, _ held: [HeldDeletion], _ notices: [Notice], dryRun: Bool
        ) {
            self.folder = folder
            self.dryRun = dryRun
            ignored = dryRun ? report.ignored : nil
            downloaded = report.downloaded.map(\.text) + report.fetchedFolders.map { $0.text + "/" }
            uploaded = report.uploaded.map(\.text) + report.sentFolders.map { $0.text + "/" }
            renamed = report.renamed.map(\.text)
            deletedHere = report.deletedHere.map(\.text) + report.removedFoldersHere.map { $0.text + "/" }
            deletedThere = report.deletedThere.map(\.text) + report.removedFoldersThere.map { $0.text + "/" }
            conflicts = report.conflicts.map(\.text)
            heldHere = report.held.here
            heldThere = report.held.there
            heldHereFiles = report.heldHere.map(\.text)
            heldThereFiles = report.heldThere.map(\.text)
            deletionsHeld = report.isVaultHeld
            heldItems = held.map(HeldItem.init)
            removed = report.removed.sorted()
            unsent = report.unsent
            offline = report.isOffline
            warnings = report.warnings.map(Warning.init)
            self.notices = notices.map(NoticeRecord.init)
        }
    }

    let folder: String
    let settings: FolderSettings
    let watches: Bool
    /// True to print only the actions of a sync.
    let isDry: Bool
    let asJSON: Bool
    /// True when the output names the folder.
    let isOneOfSeveral: Bool

    /// Syncs several folders: watched ones at the same time, others one after another. When one of them fails, the
    /// others continue.
    /// - Throws: For several folders a ``CommandFailure`` with the messages of all, and the most serious status.
    static func run(_ folders: [SyncFolder], _ opened: OpenOwner, _ console: Console) async throws {
        // Before other processes use the store.
        let known = try await opened.items.notices()
        if folders.count == 1 { return try await folders[0].run(opened, known, console) }
        let failures =
            folders[0].watches
            ? await watch(folders, opened, known, console)
            : await runInTurn(folders, opened, known, console)
        if let failure = FolderFailure.summary(of: failures) { throw failure }
    }

    private static func runInTurn(
        _ folders: [SyncFolder], _ opened: OpenOwner, _ known: [Notice], _ console: Console
    ) async -> [FolderFailure] {
        var failures: [FolderFailure] = []
        for folder in folders {
            guard let failure = await folder.failure(opened, known, console) else { continue }
            failures.append(failure)
            if failure.isInterruption { break }
        }
        return failures
    }

    private static func watch(
        _ folders: [SyncFolder], _ opened: OpenOwner, _ known: [Notice], _ console: Console
    ) async -> [FolderFailure] {
        await withTaskGroup(of: FolderFailure?.self) { group in
            for folder in folders { group.addTask { await folder.failure(opened, known, console) } }
            var failures: [FolderFailure] = []
            for await failure in group {
                guard let failure else {
                    // The output is closed: no folder can report anything.
                    group.cancelAll()
                    continue
                }
                if failure.isInterruption, console.hasLostOutput { continue }
                failures.append(failure)
                if !failure.isInterruption, failures.count < folders.count {
                    let message = failure.messages.joined(separator: "; ")
                    console.notice("\(message); the other folders continue", code: failure.reason.code)
                }
            }
            return failures
        }
    }

    /// Syncs the folder.
    /// - Returns: nil after success.
    private func failure(
        _ opened: OpenOwner, _ known: [Notice], _ console: Console
    ) async -> FolderFailure? {
        do {
            try await run(opened, known, console)
            return nil
        } catch {
            return FolderFailure(folder: folder, error)
        }
    }

    /// - Parameter known: The earlier notices.
    private func run(_ opened: OpenOwner, _ known: [Notice], _ console: Console) async throws {
        let root = URL(filePath: folder, directoryHint: .isDirectory)
        let (account, items) = (opened.account, opened.items)
        let vault = account.vault
        let sync = FolderSync(items, root: root, settings: settings)
        if isDry {
            let plan = try await console.showingProgress(of: vault) { try await sync.plan() }
            try show(plan, [], [], console)
            if plan.needsAttention { throw CommandFailure([], status: ExitStatus.attention, code: "attention") }
            return
        }
        if watches {
            let told = Mutex(Set(known))
            let standing = Mutex(RepeatedLines())
            let learning = PeriodicTask(every: .seconds(3_600))
            do {
                try await sync.watch { report in
                    if !report.isOffline {
                        // A server publishes its next key long before it uses it.
                        await learning.runIfDue { try await account.learnPins() }
                    }
                    let notices = try await items.notices()
                    let before = told.withLock { told in
                        defer { told = Set(notices) }
                        return told
                    }
                    try show(
                        report, try await items.heldDeletions(), notices.filter { !before.contains($0) }, console
                    ) { lines in standing.withLock { $0.takeNew(lines) } }
                    if console.hasLostOutput { throw OutputClosed() }
                }
            } catch is OutputClosed {
                return
            }
            throw Explanation.interrupted
        }
        let report = try await console.showingProgress(of: vault) { try await sync.run() }
        let notices = try await items.notices().unreported(after: known)
        try show(report, try await items.heldDeletions(), notices, console)
        // An error here does not fail the command: the next call repeats it.
        if !report.isOffline { try? await account.learnPins() }
        if report.needsAttention || notices.wantAttention {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }

    /// The output is closed: the command ends with its status.
    private struct OutputClosed: Error {}

    private func show(
        _ report: FolderReport, _ held: [HeldDeletion], _ notices: [Notice], _ console: Console,
        _ shown: ([String]) -> [String] = { $0 }
    ) throws {
        try console.show(Record(folder, report, held, notices, dryRun: isDry), asJSON: asJSON) {
            var lines = report.lines(isDry: isDry) + shown(report.standingLines + HeldItem.lines(held))
            lines += notices.map(\.text)
            if isOneOfSeveral, !lines.isEmpty { lines.insert(VisibleText.visible(folder) + ":", at: 0) }
            return lines.map { $0 + "\n" }.joined()
        }
    }
}

/// The reason for which one of several folders was not synced, or needs attention.
struct FolderFailure {
    let folder: String
    let reason: CommandFailure

    init(folder: String, _ error: any Error) {
        self.folder = folder
        reason = error as? CommandFailure ?? Explanation.explain(error) ?? CommandFailure("\(error)")
    }

    var isInterruption: Bool { reason.status == ExitStatus.interrupted }

    /// The messages, each with the folder. An interruption is about all of them.
    var messages: [String] {
        if isInterruption { return reason.messages }
        return reason.messages.map { "\(VisibleText.visible(folder)): \($0)" }
    }

    /// Returns the failure of the command: all messages, and the status and the code of the most serious failure.
    static func summary(of failures: [FolderFailure]) -> CommandFailure? {
        let worst = failures.min { ExitStatus.isMoreSerious($0.reason.status, than: $1.reason.status) }
        guard let worst else { return nil }
        var messages: [String] = []
        for message in failures.flatMap(\.messages) where !messages.contains(message) { messages.append(message) }
        return CommandFailure(messages, status: worst.reason.status, code: worst.reason.code)
    }
}

/// Lines about the state of a folder, which every round reports. With `--watch` each is printed when it is new since
/// the previous round.
private struct RepeatedLines {
    private var last: Set<String> = []

    mutating func takeNew(_ lines: [String]) -> [String] {
        defer { last = Set(lines) }
        return lines.filter { !last.contains($0) }
    }
}

extension FolderReport {
    /// True when the user should check the report.
    fileprivate var needsAttention: Bool {
        isVaultHeld || isOffline || unsent > 0 || !held.isEmpty || !conflicts.isEmpty
            || warnings.contains { !$0.isRepeated }
    }

    /// The lines about the actions, one for each file.
    fileprivate func lines(isDry: Bool) -> [String] {
        var lines: [String] = []
        for (word, plan, files, folders) in [
            ("fetched", "would fetch", downloaded, fetchedFolders), ("sent", "would send", uploaded, sentFolders),
            ("renamed", "would rename", renamed, []),
            ("deleted here", "would delete here", deletedHere, removedFoldersHere),
            ("deleted there", "would delete there", deletedThere, removedFoldersThere),
            ("kept both", "would keep both", conflicts, []),
        ] {
            let names = files.map(\.text) + folders.map { $0.text + "/" }
            lines += names.map { "\(isDry ? plan : word): \(VisibleText.visible($0))" }
        }
        if isDry { lines += ignored.map { "ignored: \(VisibleText.visible($0))" } }
        if !removed.isEmpty { lines.append(Findings.line(ofRemoved: removed.count)) }
        return lines
    }

    /// The lines about the present state.
    fileprivate var standingLines: [String] {
        var lines = warnings.filter { !$0.isRepeated }.map(\.text)
        let repeated = warnings.count(where: \.isRepeated)
        if repeated > 0 { lines.append("left alone as before: \(repeated); see --json") }
        if held.here > 0 {
            lines.append(
                counted(held.here, "file was", "files were")
                    + " deleted or emptied elsewhere: see --allow-deletions-here")
            lines += HeldItem.names(heldHere.map(\.text))
        }
        if held.there > 0 {
            lines.append(
                counted(held.there, "file is", "files are") + " missing or empty here: see --allow-deletions-there")
            lines += HeldItem.names(heldThere.map(\.text))
        }
        if isVaultHeld { lines.append("many items were deleted elsewhere: see --allow-deletions") }
        if unsent > 0 { lines.append("not sent: \(counted(unsent, "change")); see saltern-client status") }
        if isOffline { lines.append("the server cannot be reached: local changes are sent later") }
        return lines
    }
}

extension FolderWarning {
    /// The warning as a sentence.
    fileprivate var text: String {
        if kind == .unwatched {
            return
                "some folders in \(VisibleText.visible(path)) cannot be watched, so all of them are scanned every minute: "
                + "a limit of the kernel is reached (see sysctl fs.inotify.max_user_watches, and max_user_instances), or one "
                + "cannot be opened"
        }
        return "left alone (\(kind.rawValue)): \(VisibleText.visible(path))"
            + (kind == .hiddenExecutable ? ": see --allow-hidden-executables" : "")
            + (kind == .readOnly ? ": the account may not write to the vault; its changes are not sent" : "")
            + (shortage.map { ": \($0.text)" } ?? "") + (failure.map { ": \($0.reason)" } ?? "")
            + (ignoreFault.map { ": \($0.text)" } ?? "")
    }
}

extension IgnoreFault {
    /// The fault as a sentence.
    fileprivate var text: String {
        (line.map { "line \($0): " } ?? "") + words + "; nothing else in its folder is synced until it is corrected"
    }

    private var words: String {
        switch reason {
        case .fileTooLong: "the file has more than 64 KiB"
        case .lineTooLong: "it has more than 1,024 bytes"
        case .tooManyPatterns: "the file has more than 1,000 patterns"
        case .notText: "it is not UTF-8, or contains a NUL"
        case .emptyName: "a name in the pattern is empty"
        case .dotName: "no path contains the names . and .."
        case .trailingBackslash: "the backslash at the end escapes nothing"
        case .openBracket: "a bracket expression has no end"
        case .noFile: "it is a link, a folder or a special file"
        case .unreadable: "it cannot be read"
        }
    }
}

/// A task that is due at once, and then once in a period. After an error it is due at the next call.
final class PeriodicTask: Sendable {
    private let period: Duration
    private let nextRun = Mutex<ContinuousClock.Instant?>(nil)

    init(every period: Duration) { self.period = period }

    /// Runs the work if it is due. Calls do not overlap, because a folder has one round after another.
    func runIfDue(at moment: ContinuousClock.Instant = .now, _ work: () async throws -> Void) async {
        guard nextRun.withLock({ $0.map { moment >= $0 } ?? true }), (try? await work()) != nil else { return }
        nextRun.withLock { $0 = moment + period }
    }
}
