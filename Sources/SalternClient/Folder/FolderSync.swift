internal import Cryptography
public import Foundation

/// Keeps a folder of files and a collection of a vault the same.
///
/// What is changed on one side goes to the other; what is changed on both is kept twice. Nothing is deleted that somebody
/// has changed, and what is deleted or replaced is in a trash: of the folder (`.saltern/trash`, for 30 days) or of the vault.
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
            try await refuseWrongPlace()
            let tree = try FolderTree(root, system)
            var report = FolderReport()
            guard let (id, isAnew) = try await identify(tree, &report) else {
                // What is not the folder that is known says nothing about it, and gets nothing that belongs in it.
                _ = try await syncVault(agreesToDeletions: settings.allowsDeletions, &report)
                report.unsent = try await vault.unsentCount()
                return report
            }
            // Who has agreed that a folder begins anew has been told that nothing is deleted.
            var round = Round(
                tree: tree, folder: id, allowsDeletions: settings.allowsDeletions && !isAnew, foldsCase: tree.folds,
                date: Self.today())
            tree.hashes = try await vault.fileHashes(in: id)
            do {
                try await goThrough(&round, &report)
            } catch {
                // A copy that was made meanwhile has not all of it.
                if round.hasAdvanced { try? await advance(round, &report) }
                throw error
            }
            if round.hasAdvanced { try await advance(round, &report) }
            report.unsent = try await vault.unsentCount()
            return report
        } catch let error as VaultError {
            if case .unavailable(.transport(.cancelled)) = error { throw FolderError.cancelled }
            throw FolderError.vault(error)
        } catch is CancellationError {
            throw FolderError.cancelled
        }
    }

    private func goThrough(_ round: inout Round, _ report: inout FolderReport) async throws {
        for _ in 0..<Self.rounds {
            let hasNews = try await syncVault(agreesToDeletions: round.allowsDeletions, &report)
            try await supplyChunks(round, &report)
            let hasDone = try await settle(&round, &report)
            if !hasDone && !hasNews { break }
        }
    }

    /// What one call of ``run()`` goes on with.
    private struct Round {
        let tree: FolderTree
        let folder: ItemID
        let allowsDeletions: Bool
        let foldsCase: Bool
        let date: String
        var deletions: FolderDeletionGuard?
        /// Whether the folder's generation says that something was changed.
        var hasAdvanced = false
    }

    private static func today() -> String { String(Date().ISO8601Format().prefix(10)) }

    /// Before anything is written in the folder.
    private func refuseWrongPlace() async throws {
        // The store would be sent, and written over by that of another device.
        if FolderPlace.overlap(root, vault.settings.folder.path) { throw FolderError.holdsStore }
        guard let marker = system.openRoot(root).flatMap({ FolderTree.marker(in: $0, system) }) else { return }
        // Of two folders that pass for one each would undo what the other has.
        if let other = try await vault.place(ofFolder: marker.id), other != root,
            FolderPlace.isCopy(root, of: other, marker: marker, system)
        {
            throw FolderError.copy(of: other)
        }
        // What is known of its files is about items of that collection: in another one all would begin anew.
        var other = marker.collection
        if other == nil {
            other = try await vault.otherCollection(ofFolder: marker.id, than: settings.collection)
        }
        if let other, other != settings.collection { throw FolderError.otherCollection(other) }
        if try await isOutdated(marker), !settings.allowsDeletions { throw FolderError.outdated }
    }

    /// Whether the folder is as it was before others of its rounds.
    private func isOutdated(_ marker: FolderMarker) async throws -> Bool {
        try await marker.generation < vault.generation(ofFolder: marker.id)
    }

    /// - Returns: Nil when a folder that was here has lost its marker, and nobody has agreed to begin anew.
    private func identify(
        _ tree: FolderTree, _ report: inout FolderReport
    ) async throws -> (id: ItemID, isAnew: Bool)? {
        var marker = tree.marker()
        var isAnew = false
        if let old = marker, try await isOutdated(old) {
            marker = FolderMarker(id: .random())
            isAnew = true
        }
        let opened = try await vault.openFolder(at: root, marker: marker?.id)
        var id = opened.id
        if opened.isMarkerMissing {
            guard settings.allowsDeletions else {
                report.warn(.markerMissing, root)
                return nil
            }
            // What is missing in a folder that is not the one that it was, nobody has deleted.
            id = .random()
            isAnew = true
        }
        if tree.marker()?.id != id {
            guard tree.setMarker(FolderMarker(id: id, collection: settings.collection)) else {
                throw FolderError.unusable
            }
            try await vault.noteFolder(id, at: root)
        }
        return (id, isAnew)
    }

    /// Says in the folder, and then in the store, that it goes on: whoever is killed between the two has the later marker.
    private func advance(_ round: Round, _ report: inout FolderReport) async throws {
        let known = try await vault.generation(ofFolder: round.folder)
        let next = max(round.tree.marker()?.generation ?? 0, known) + 1
        // What a full disk has no room for is no reason to send nothing.
        let marker = FolderMarker(id: round.folder, generation: next, collection: settings.collection)
        guard round.tree.setMarker(marker) else {
            return report.warn(.failed, FolderTree.markerPath)
        }
        try await vault.setGeneration(next, ofFolder: round.folder)
    }

    /// - Returns: Whether anything went to or fro.
    private func syncVault(agreesToDeletions: Bool, _ report: inout FolderReport) async throws -> Bool {
        do throws(VaultError) {
            let result = agreesToDeletions ? try await vault.agreeToDeletions() : try await vault.sync()
            report.isVaultHeld = result.isHeld
            report.removed.formUnion(await vault.takeRemoved())
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
                ?? FolderDeletionGuard(total: view.known.count, isOff: round.allowsDeletions)
            let (permitted, held) = deletions.permit(FolderDecision.decide(view).filter { !failed.contains($0) })
            round.deletions = deletions
            report.held = held
            if permitted.isEmpty { break }
            if !round.hasAdvanced {
                try await advance(round, &report)
                round.hasAdvanced = true
            }
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
        view.isWalkComplete = scan.isComplete
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

    /// A server that was restored may have lost chunks whose content is in a file here, and perhaps nowhere else. They go up
    /// before anything comes over that file.
    private func supplyChunks(_ round: Round, _ report: inout FolderReport) async throws {
        let lacking = try await vault.attachmentsLackingChunks()
        if lacking.isEmpty || report.isOffline { return }
        let before = round.tree.hashes
        let scan = round.tree.walk(into: &report)
        try await vault.setFileHashes(round.tree.hashes, after: before, in: round.folder)
        for attachment in lacking {
            for (path, content) in scan.files where content.digest == attachment.digest {
                guard let (source, _) = round.tree.source(path) else { continue }
                do throws(AttachmentError) {
                    try await vault.supply(attachment, from: source)
                } catch {
                    try Self.tolerate(error)
                }
                break
            }
        }
    }

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
            round.tree.place(part, at: path, over: over, remote.content, modified: file.modified, aside: aside)
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
