internal import Cryptography
internal import Foundation

/// One step towards equal sides. Each step is consistent, so an interrupted sync can restart after any of them.
enum FolderAction: Hashable, Sendable {
    /// Records the state of both sides.
    case note(ItemID, FolderPath, FileContent)
    /// Removes the record: the file does not exist on both sides, or its state in the vault is unknown.
    case forget(ItemID)
    /// Sends the local file: over the item, or as a new one.
    case upload(FolderPath, FileContent, over: ItemID?)
    /// Writes the item's file, in place of `over`.
    case download(ItemID, to: FolderPath, over: FileContent?)
    /// Renames the local file, as in the vault.
    case moveHere(ItemID, from: FolderPath, to: FolderPath, FileContent)
    /// Renames the item: it was renamed locally, or cannot have its name in the vault.
    case moveThere(ItemID, to: FolderPath, isHere: Bool)
    /// Deletes the local file: it was deleted in the vault, and not changed locally.
    case deleteHere(ItemID, FolderPath, FileContent)
    /// Deletes the item: it was deleted locally, and not changed in the vault.
    case deleteThere(ItemID)
    /// Deletes the item, because another one has the same name and content.
    case mergeThere(ItemID)
    /// Sets the executable bit, which is the only change in the vault. The file keeps its local content.
    case setExecutable(ItemID, FolderPath, Bool)
    /// Renames the local file to make room. It is a separate file from then on.
    case moveAside(FolderPath, to: FolderPath, FileContent)
    /// Records that a folder exists and has an item.
    case noteFolder(ItemID, FolderPath)
    /// Removes the record: the folder has no item, or does not exist on both sides.
    case forgetFolder(ItemID)
    /// Creates an empty folder locally.
    case makeFolderHere(ItemID, FolderPath)
    /// Removes an empty local folder, as in the vault.
    case removeFolderHere(ItemID, FolderPath)
    /// Creates the item of an empty folder.
    case makeFolderThere(FolderPath)
    /// Deletes the item of a folder: it was removed locally, or other items have the same path.
    case removeFolderThere(ItemID)
}

extension FolderSync {
    /// Carries out an action.
    /// - Returns: False when it is not possible now, because of another change or an obstacle.
    func carryOut(
        _ action: FolderAction, _ view: FolderView, _ round: inout Round, _ report: inout FolderReport
    ) async throws -> Bool {
        let (tree, folder) = (round.tree, round.folder)
        switch action {
        case .note(let id, let path, let content):
            let known = KnownFile(path: path, content: content, stamp: view.remote[id]?.stamp)
            try await records.setKnownFile(id, known, in: folder)
        case .forget(let id):
            try await records.setKnownFile(id, nil, in: folder)
        case .upload(let path, let content, let id):
            guard try await upload(path, content, id, view, &round, &report) else { return false }
            report.uploaded.append(path)
        case .download(let id, let path, let over):
            guard try await download(id, path, over, view, round) else { return false }
            report.downloaded.append(path)
        case .moveHere(let id, let from, let to, _):
            guard var known = view.known[id], tree.parts.move(from, to: to) else { return false }
            (known.path, known.stamp) = (to, nil)
            try await records.setKnownFile(id, known, in: folder)
            report.renamed.append(to)
        case .moveThere(let id, let path, let isHere):
            var known = isHere ? view.known[id] : nil
            known?.path = path
            known?.stamp = nil
            guard let seen = view.remote[id]?.stamp,
                try await records.putFile(id, path, nil, over: seen, settings.collection, known: known, in: folder)
            else { return false }
            report.renamed.append(path)
        case .deleteHere(let id, let path, let content):
            let name = FolderTrash.newName(path)
            try await records.noteTrashed(name, TrashedFile(path: path, digest: content.digest), in: folder)
            guard tree.parts.discard(path, content, as: name) else { return false }
            try await records.setKnownFile(id, nil, in: folder)
            report.deletedHere.append(path)
        case .deleteThere(let id), .mergeThere(let id):
            guard let remote = view.remote[id], try await records.deleteFile(id, remote.stamp, in: folder) else {
                return false
            }
            if case .deleteThere = action { report.deletedThere.append(remote.path) }
        case .setExecutable(let id, let path, let isExecutable):
            guard let remote = view.remote[id], tree.setExecutable(path, isExecutable) else { return false }
            // The local change is sent over this version later.
            let known = KnownFile(path: path, content: remote.content, stamp: remote.stamp)
            try await records.setKnownFile(id, known, in: folder)
            report.downloaded.append(path)
        case .moveAside(let from, let to, _):
            guard tree.parts.move(from, to: to) else { return false }
            report.conflicts.append(to)
        case .noteFolder, .forgetFolder, .makeFolderHere, .removeFolderHere, .makeFolderThere, .removeFolderThere:
            return try await carryOutFolder(action, view, round, &report)
        }
        return true
    }
}

/// A file for which the plan had no room.
struct UnfittingFile {
    var content: FileContent
    var room: PlanRoom
    var shortage: PlanShortage
}

/// Sends files to the vault.
extension FolderSync {
    func upload(
        _ path: FolderPath, _ content: FileContent, _ id: ItemID?, _ view: FolderView, _ round: inout Round,
        _ report: inout FolderReport
    ) async throws -> Bool {
        guard let (source, modified) = round.tree.root.source(path), source.byteCount == content.byteCount else {
            return false
        }
        if let shortage = try await knownShortage(path, content, &round) {
            report.warn(shortage, path)
            return false
        }
        if isCutOff, Self.isLong(content) { return false }
        let item = id ?? vault.settings.newID()
        let seen = id.flatMap { view.remote[$0]?.stamp }
        let made: Attachment
        do throws(VaultError) {
            var draft = try await draft(path, content, id, seen, round.folder)
            // The file itself keeps the content.
            draft.keepsContent = false
            made = try await owned.attach(
                source, draft,
                properties: FileVersion.properties(isExecutable: content.isExecutable, modified: modified))
        } catch {
            if case .noRoom(let shortage) = error {
                report.warn(shortage, path)
                // The room without this file, because its chunks were taken back.
                round.room = try? await owned.room()
                if let room = round.room {
                    unfitting[path] = UnfittingFile(content: content, room: room, shortage: shortage)
                }
            }
            try tolerate(error)
            return false
        }
        unfitting[path] = nil
        // The file was written while it was read.
        guard made.digest == content.digest else { return false }
        let known = KnownFile(path: path, content: content, stamp: ItemStamp())
        return try await records.putFile(
            item, path, made.body(), over: seen, settings.collection, known: known, in: round.folder)
    }

    /// Returns the earlier shortage of a file, if neither it nor the room of the plan has improved. Then nothing is
    /// read.
    private func knownShortage(
        _ path: FolderPath, _ content: FileContent, _ round: inout Round
    ) async throws -> PlanShortage? {
        guard let file = unfitting[path], file.content == content else { return nil }
        if round.room == nil { round.room = try? await owned.room() }
        guard let room = round.room, !room.isLarger(than: file.room) else { return nil }
        return file.shortage
    }

    /// Returns the draft under which the content is sent. Unchanged chunks of the previous version, or of an
    /// interrupted upload, are not sent again.
    private func draft(
        _ path: FolderPath, _ content: FileContent, _ id: ItemID?, _ seen: ItemStamp?, _ folder: ItemID
    ) async throws(VaultError) -> AttachmentDraft {
        // Shorter content is sent in one request, or nearly so.
        let isLong = Self.isLong(content)
        if let id, let seen, let draft = try await records.draft(over: id, seen) {
            if isLong { try await records.beginUpload(path, of: draft.id, in: folder) }
            return draft
        }
        if !isLong { return AttachmentDraft(nil) }
        return AttachmentDraft(
            try await records.beginUpload(path, in: folder), before: AttachmentDraft.Before())
    }

    /// Returns true when the content is sent in chunks beside its item.
    private static func isLong(_ content: FileContent) -> Bool {
        content.byteCount > Int64(Attachment.chunkByteCount)
    }

    /// Takes back uploads of files that no longer exist, or that have the last synced content.
    func abandonUploads(_ round: Round) async throws {
        guard let local = round.local else { return }
        unfitting = unfitting.filter { local[$0.key] != nil || !round.examines($0.key) }
        for (path, attachment) in try await records.uploads(in: round.folder) where round.examines(path) {
            if let content = local[path], content != round.known[path] { continue }
            try await records.abandonUpload(path, attachment, in: round.folder)
        }
    }
}

/// Sends and fetches the content of files.
extension FolderSync {
    /// Sends chunks that a restored server has lost from a local file, which is possibly their only copy. It
    /// does so before that file is replaced.
    func supplyChunks(_ round: inout Round, _ report: inout FolderReport) async throws {
        let lacking = try await owned.lackingChunks()
        if lacking.isEmpty || report.isOffline { return }
        // Any file may have the content.
        if round.focus != nil { try await round.takeWhole(records) }
        let before = round.tree.hashes
        let scan = try await walk(round.tree, into: &report)
        try await records.setFileHashes(round.tree.hashes, after: before, in: round.folder)
        for attachment in lacking {
            for (path, content) in scan.files where content.digest == attachment.digest {
                guard let (source, _) = round.tree.root.source(path) else { continue }
                do throws(VaultError) {
                    try await owned.supply(attachment, from: source)
                } catch {
                    // Each round repeats the warning until the server has the chunk.
                    if case .noRoom(let shortage) = error {
                        report.warn(shortage, path)
                    } else {
                        report.warn(.failed, path.text)
                    }
                    try tolerate(error)
                }
                break
            }
        }
    }

    func download(
        _ id: ItemID, _ path: FolderPath, _ over: FileContent?, _ view: FolderView, _ round: Round
    ) async throws -> Bool {
        guard let remote = view.remote[id], let content = view.fetched(id, over: over),
            let file = try await views.file(id, remote.stamp)
        else { return false }
        // Only the executable bit differs. A program that has the file open continues to write to it.
        if over?.digest == remote.content.digest, round.tree.changeExecutable(path, content.isExecutable) {
            try await records.setKnownFile(id, Self.known(path, remote), in: round.folder)
            return true
        }
        guard let part = try round.tree.parts.fetchPart(id) else { return false }
        guard try await fetch(file.attachment, to: part, round) else { return false }
        let aside = path.conflicting("\(view.device), \(view.date), \(ItemID.random().description.prefix(8))")
        if view.known[id] == nil {
            // If the process ends after this, the next one recognises the file, even when it is renamed in the vault.
            let known = KnownFile(path: path, content: remote.content, stamp: nil, isPending: true)
            try await records.setKnownFile(id, known, in: round.folder)
        }
        let trashed = FolderTrash.newName(path)
        if let over {
            // Before it is displaced: a program that has it open may write to it, even after this process has ended.
            try await records.noteTrashed(trashed, TrashedFile(path: path, digest: over.digest), in: round.folder)
        }
        guard system.digest(of: part.file) == remote.content.digest,
            round.tree.parts.place(
                part, at: path, over: over, content, modified: file.modified, aside: aside, trashed: trashed)
        else {
            round.tree.parts.removePart(part.name)
            return false
        }
        try await records.setKnownFile(id, Self.known(path, remote), in: round.folder)
        return true
    }

    /// Returns the state of a file that has an item's content.
    private static func known(_ path: FolderPath, _ remote: RemoteFile) -> KnownFile {
        KnownFile(path: path, content: remote.content, stamp: remote.path == path ? remote.stamp : nil)
    }

    /// Fetches content to a file that may already contain its beginning.
    /// - Returns: False when it was not fetched completely.
    private func fetch(
        _ attachment: Attachment, to part: (name: String, file: Descriptor), _ round: Round
    ) async throws -> Bool {
        let byteCount = system.status(part.file).map { Int64($0.st_size) } ?? 0
        let arrived = AttachmentSource(byteCount: byteCount) { [system] offset, count in
            try SecureBytes(count: count) { buffer throws(FolderError) in
                guard system.read(part.file, at: offset, into: buffer) == count else { throw .unusable }
            }
        }
        let first = try await owned.fetchedPieces(of: attachment, in: arrived)
        if isCutOff, first < attachment.chunks.count {
            round.tree.parts.noteUnfinished(part.name)
            return false
        }
        do throws(VaultError) {
            let kept = min(Int64(first) * Int64(attachment.chunkByteCount), attachment.byteCount)
            guard byteCount == kept || system.truncate(part.file, to: kept) else { throw .sourceFailed }
            for index in first..<attachment.pieceCount {
                try await restBeforePiece()
                let piece = try await owned.piece(index, of: attachment, keepsCopy: false)
                let isWritten = piece.withUnsafeBytes { system.write($0, to: part.file) }
                guard isWritten else { throw .sourceFailed }
            }
            return true
        } catch {
            if error.keepsArrived {
                round.tree.parts.noteUnfinished(part.name)
            } else {
                round.tree.parts.removePart(part.name)
            }
            try tolerate(error)
            return false
        }
    }

    /// Returns for an error of one file, so that others continue. Throws every other error.
    func tolerate(_ error: VaultError) throws {
        if error.isCancellation { throw FolderError.cancelled }
        // Without a connection, or on a line that carries no chunk, all long files fail.
        switch error {
        case .unavailable(.transport(.unreachable)), .unavailable(.transport(.timedOut)),
            .unavailable(.transport(.connectionLost)):
            isCutOff = true
        default: break
        }
        switch error {
        case .unavailable, .refused, .sourceFailed, .noRoom, .missingChunk, .damagedChunk: return
        default: throw error
        }
    }
}
