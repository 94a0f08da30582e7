import CommandLineKit
import Foundation
import SalternClient

/// `saltern-client sync DIR`: a folder of files and a collection, once or until Ctrl-C.
struct SyncFolder {
    /// One round, for scripts.
    private struct Record: Encodable {
        struct Warning: Encodable {
            let kind: String
            let path: String
        }

        let downloaded: [String]
        let uploaded: [String]
        let renamed: [String]
        let deletedHere: [String]
        let deletedThere: [String]
        let conflicts: [String]
        let heldHere: Int
        let heldThere: Int
        let unsent: Int
        let offline: Bool
        let warnings: [Warning]

        init(_ report: FolderReport) {
            downloaded = report.downloaded.map(\.text)
            uploaded = report.uploaded.map(\.text)
            renamed = report.renamed.map(\.text)
            deletedHere = report.deletedHere.map(\.text)
            deletedThere = report.deletedThere.map(\.text)
            conflicts = report.conflicts.map(\.text)
            heldHere = report.held.here
            heldThere = report.held.there
            unsent = report.unsent
            offline = report.isOffline
            warnings = report.warnings.map { Warning(kind: $0.kind.rawValue, path: $0.path) }
        }
    }

    let folder: String
    let settings: FolderSettings
    let watches: Bool
    let asJSON: Bool

    func run(_ account: OpenAccount, _ console: Console) async throws {
        let root = URL(filePath: folder, directoryHint: .isDirectory)
        let sync = FolderSync(vault: account.vault, root: root, settings: settings)
        if watches {
            try await sync.watch { report in try? show(report, console) }
            throw Explanation.interrupted
        }
        let known = Set(try await account.vault.notices().map(\.number))
        let report = try await console.showingProgress(of: account.vault) { try await sync.run() }
        try show(report, console)
        let notices = try await account.vault.notices().filter { !known.contains($0.number) }
        if !asJSON { console.write(notices.map { "\($0.text)\n" }.joined()) }
        // Not what was asked for: without it the next time will do.
        _ = try? await account.vault.sweepChunks()
        if report.needsAttention || !notices.isEmpty {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }

    private func show(_ report: FolderReport, _ console: Console) throws {
        try console.show(Record(report), asJSON: asJSON) { report.lines }
    }
}

extension FolderReport {
    /// Whether a person should look.
    fileprivate var needsAttention: Bool {
        isVaultHeld || isOffline || unsent > 0 || !held.isEmpty || !conflicts.isEmpty || !warnings.isEmpty
    }

    /// What a person reads: a line for each file, none when nothing was to do.
    fileprivate var lines: String {
        var lines: [String] = []
        for (word, paths) in [
            ("fetched", downloaded), ("sent", uploaded), ("renamed", renamed), ("deleted here", deletedHere),
            ("deleted there", deletedThere), ("kept both", conflicts),
        ] { lines += paths.map { "\(word): \(VisibleText.visible($0.text))" } }
        lines += warnings.map { "left alone (\($0.kind.rawValue)): \(VisibleText.visible($0.path))" }
        if held.here > 0 { lines.append("\(held.here) files were deleted elsewhere: see --allow-deletions") }
        if held.there > 0 { lines.append("\(held.there) files are missing here: see --allow-deletions") }
        if isVaultHeld { lines.append("many items were deleted elsewhere: see --allow-deletions") }
        if unsent > 0 { lines.append("not sent: \(unsent) changes; see saltern-client status") }
        if isOffline { lines.append("the server is away: what changed here is sent later") }
        return lines.map { $0 + "\n" }.joined()
    }
}
