internal import Cryptography
public import Foundation

/// Keeps a folder of files and a collection of a vault the same.
///
/// What is changed on one side goes to the other; what is changed on both is kept twice. Nothing is deleted that somebody
/// has changed, and what is deleted is in a trash: of the folder (`.saltern/trash`, for 30 days) or of the vault.
public actor FolderSync {
    let vault: Vault
    let root: String
    let settings: FolderSettings
    private let system: any FolderSystem

    /// - Parameter root: A folder that is there. It gets a folder `.saltern`, by which it is known again.
    public init(vault: Vault, root: URL, settings: FolderSettings = FolderSettings()) {
        self.init(vault, root.standardizedFileURL.resolvingSymlinksInPath().path, settings, DiskFolders())
    }

    init(_ vault: Vault, _ root: String, _ settings: FolderSettings, _ system: any FolderSystem) {
        self.vault = vault
        self.root = root
        self.settings = settings
        self.system = system
    }

    private static let rounds = 4
    private static let passes = 16

    /// One round: brings vault and server together, then folder and vault, until nothing is left to do.
    /// - Throws: ``FolderError``. What was done by then is done; the next round goes on.
    @discardableResult
    public func run() async throws -> FolderReport {
        do {
            let tree = try FolderTree(root, system)
            var report = FolderReport()
            let (id, isComplete) = try await identify(tree, &report)
            var round = Round(
                tree: tree, folder: id, isComplete: isComplete, foldsCase: tree.folds, date: Self.today())
            tree.hashes = try await vault.fileHashes(in: id)
            for _ in 0..<Self.rounds {
                let hasNews = try await syncVault(&report)
                let hasDone = try await settle(&round, &report)
                if !hasDone && !hasNews { break }
            }
            report.unsent = try await vault.unsentCount()
            return report
        } catch let error as VaultError {
            if case .unavailable(.transport(.cancelled)) = error { throw FolderError.cancelled }
            throw FolderError.vault(error)
        } catch is CancellationError {
            throw FolderError.cancelled
        }
    }

    /// What one call of ``run()`` goes on with.
    private struct Round {
        let tree: FolderTree
        let folder: ItemID
        let isComplete: Bool
        let foldsCase: Bool
        let date: String
        var deletions: FolderDeletionGuard?
    }

    private static func today() -> String { String(Date().ISO8601Format().prefix(10)) }

    private func identify(_ tree: FolderTree, _ report: inout FolderReport) async throws -> (ItemID, Bool) {
        let marker = tree.marker()
        let (id, isMarkerMissing) = try await vault.openFolder(at: root, marker: marker)
        if isMarkerMissing && !settings.allowsDeletions {
            report.warn(.markerMissing, root)
            return (id, false)
        }
        if marker == nil {
            try tree.setMarker(id)
            try await vault.noteFolder(id, at: root)
        }
        return (id, true)
    }

    /// - Returns: Whether anything went to or fro.
    private func syncVault(_ report: inout FolderReport) async throws -> Bool {
        do throws(VaultError) {
            let result = settings.allowsDeletions ? try await vault.agreeToDeletions() : try await vault.sync()
            report.isVaultHeld = result.isHeld
            return !result.changed.isEmpty
        } catch {
            guard case .unavailable(let cause) = error else { throw error }
            // Another key, another certificate or nonsense does not pass.
            guard cause.isPassing else { throw error }
            report.isOffline = true
            return false
        }
    }

    // MARK: Steps

    /// Does what is decided, looks again, until nothing is left.
    private func settle(_ round: inout Round, _ report: inout FolderReport) async throws -> Bool {
        var hasDone = false
        var failed: Set<FolderAction> = []
        for _ in 0..<Self.passes {
            let view = try await view(round, &report)
            var deletions =
                round.deletions
                ?? FolderDeletionGuard(total: view.known.count, isOff: settings.allowsDeletions)
            let (permitted, held) = deletions.permit(FolderDecision.decide(view).filter { !failed.contains($0) })
            round.deletions = deletions
            report.held = held
            if permitted.isEmpty { break }
            for action in permitted {
                try Task.checkCancellation()
                if try await carryOut(action, view, round, &report) { hasDone = true } else { failed.insert(action) }
            }
        }
        for action in failed { report.warn(.failed, action.path?.text ?? "") }
        return hasDone
    }

    private func view(_ round: Round, _ report: inout FolderReport) async throws -> FolderView {
        let before = round.tree.hashes
        let scan = round.tree.walk(into: &report)
        try await vault.setFileHashes(round.tree.hashes, after: before, in: round.folder)
        var (view, warnings) = try await vault.folderView(round.folder, settings.collection)
        for warning in warnings { report.warn(warning.kind, warning.path) }
        view.local = scan.files
        if round.foldsCase { view.takeKnownSpellings() }
        for (id, known) in view.known where known.isPending {
            view.known[id] = view.local[known.path] == known.content ? known.done : nil
        }
        view.isWalkComplete = scan.isComplete && round.isComplete
        view.foldsCase = round.foldsCase
        view.device = FolderPath.words(of: settings.deviceName)
        view.date = round.date
        // Where something else is than a file, nobody has deleted what was there.
        for (id, known) in view.known where scan.hides(known.path) { view.ignored.insert(id) }
        for (id, file) in view.remote where scan.hides(file.path) { view.ignored.insert(id) }
        return view
    }

    /// - Returns: false when it could not be done now: something has changed meanwhile, or is in the way.
    private func carryOut(
        _ action: FolderAction, _ view: FolderView, _ round: Round, _ report: inout FolderReport
    ) async throws -> Bool {
        let (tree, folder) = (round.tree, round.folder)
        switch action {
        case .note(let id, let path, let content):
            let known = KnownFile(path: path, content: content, stamp: view.remote[id]?.stamp)
            try await vault.setKnownFile(id, known, in: folder)
        case .forget(let id):
            try await vault.setKnownFile(id, nil, in: folder)
        case .upload(let path, let content, let id):
            guard try await upload(path, content, id, view, round) else { return false }
            report.uploaded.append(path)
        case .download(let id, let path, let over):
            guard try await download(id, path, over, view, round) else { return false }
            report.downloaded.append(path)
        case .moveHere(let id, let from, let to, _):
            guard var known = view.known[id], tree.move(from, to: to) else { return false }
            (known.path, known.stamp) = (to, nil)
            try await vault.setKnownFile(id, known, in: folder)
            report.renamed.append(to)
        case .moveThere(let id, let path, let isHere):
            var known = isHere ? view.known[id] : nil
            known?.path = path
            known?.stamp = nil
            guard let seen = view.remote[id]?.stamp,
                try await vault.putFile(id, path, nil, over: seen, settings.collection, known: known, in: folder)
            else { return false }
            report.renamed.append(path)
        case .deleteHere(let id, let path, let content):
            guard tree.discard(path, content) else { return false }
            try await vault.setKnownFile(id, nil, in: folder)
            report.deletedHere.append(path)
        case .deleteThere(let id), .mergeThere(let id):
            guard let remote = view.remote[id], try await vault.deleteFile(id, remote.stamp, in: folder) else {
                return false
            }
            if case .deleteThere = action { report.deletedThere.append(remote.path) }
        case .moveAside(let from, let to, _):
            guard tree.move(from, to: to) else { return false }
            report.conflicts.append(to)
        }
        return true
    }

    // MARK: Contents

    private func upload(
        _ path: FolderPath, _ content: FileContent, _ id: ItemID?, _ view: FolderView, _ round: Round
    ) async throws -> Bool {
        guard let (source, modified) = round.tree.source(path), source.byteCount == content.byteCount else {
            return false
        }
        let item = id ?? vault.settings.newID()
        let seen = id.flatMap { view.remote[$0]?.stamp }
        // Chunks that have not changed are not sent again.
        var attachment = ItemID.random()
        if let id, let seen, let file = try await vault.file(id, seen) { attachment = file.attachment.id }
        let made: Attachment
        do throws(AttachmentError) {
            made = try await vault.attach(
                source, id: attachment,
                properties: FileVersion.properties(isExecutable: content.isExecutable, modified: modified))
        } catch {
            try Self.tolerate(error)
            return false
        }
        // Somebody has written while it was read.
        guard made.digest == content.digest else { return false }
        let known = KnownFile(path: path, content: content, stamp: ItemStamp())
        return try await vault.putFile(
            item, path, made.body(), over: seen, settings.collection, known: known, in: round.folder)
    }

    private func download(
        _ id: ItemID, _ path: FolderPath, _ over: FileContent?, _ view: FolderView, _ round: Round
    ) async throws -> Bool {
        guard let remote = view.remote[id], let file = try await vault.file(id, remote.stamp) else { return false }
        let part = try round.tree.newPart()
        for index in 0..<file.attachment.pieceCount {
            do throws(AttachmentError) {
                let piece = try await vault.piece(index, of: file.attachment)
                let isWritten = piece.withUnsafeBytes { system.write($0, to: part.file) }
                guard isWritten else { throw AttachmentError.sourceFailed }
            } catch {
                round.tree.removePart(part.name)
                try Self.tolerate(error)
                return false
            }
        }
        let aside = path.suffixed("conflict, \(view.device), \(view.date), \(ItemID.random().description.prefix(8))")
        if view.known[id] == nil {
            // Who is killed with the file in its place knows it again, also when it is renamed there meanwhile.
            let known = KnownFile(path: path, content: remote.content, stamp: nil, isPending: true)
            try await vault.setKnownFile(id, known, in: round.folder)
        }
        guard round.tree.digest(of: part.file) == remote.content.digest,
            round.tree.place(
                part, at: path, over: over, isExecutable: remote.content.isExecutable, modified: file.modified,
                aside: aside)
        else {
            round.tree.removePart(part.name)
            return false
        }
        let stamp = remote.path == path ? remote.stamp : nil
        try await vault.setKnownFile(
            id, KnownFile(path: path, content: remote.content, stamp: stamp), in: round.folder)
        return true
    }

    /// What has to do with one file leaves the others alone.
    private static func tolerate(_ error: AttachmentError) throws {
        switch error {
        case .cancelled: throw FolderError.cancelled
        case .vault(let error):
            switch error {
            case .unavailable, .refused: return
            default: throw error
            }
        case .sourceFailed, .planTooSmall, .missingChunk, .damagedChunk: return
        }
    }
}

extension FolderTree.Scan {
    /// Whether what is no file of ours is at this place, or where one of its folders would be.
    func hides(_ path: FolderPath) -> Bool {
        !skipped.isEmpty && (skipped.contains(path) || path.folders.contains { skipped.contains($0) })
    }
}

extension FolderAction {
    /// The file that it is about; nil when only its item is known.
    fileprivate var path: FolderPath? {
        switch self {
        case .note(_, let path, _), .upload(let path, _, _), .download(_, let path, _), .moveThere(_, let path, _),
            .deleteHere(_, let path, _):
            path
        case .moveHere(_, let path, _, _), .moveAside(let path, _, _): path
        case .forget, .deleteThere, .mergeThere: nil
        }
    }
}
