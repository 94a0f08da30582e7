internal import Cryptography
internal import Foundation

/// Sends and fetches the content of files.
extension FolderSync {
    /// Sends chunks that a restored server has lost and whose content is in a local file, possibly the only copy. It
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
                guard let (source, _) = round.tree.source(path) else { continue }
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
        guard let part = try round.tree.fetchPart(id) else { return false }
        guard try await fetch(file.attachment, to: part, round) else { return false }
        let aside = path.conflicting("\(view.device), \(view.date), \(ItemID.random().description.prefix(8))")
        if view.known[id] == nil {
            // If the process ends after this, the next one recognises the file, even when it is renamed in the vault.
            let known = KnownFile(path: path, content: remote.content, stamp: nil, isPending: true)
            try await records.setKnownFile(id, known, in: round.folder)
        }
        let trashed = FolderTree.trashName(path)
        if let over {
            // Before it is displaced: a program that has it open may write to it, even after this process has ended.
            try await records.noteTrashed(trashed, TrashedFile(path: path, digest: over.digest), in: round.folder)
        }
        guard round.tree.digest(of: part.file) == remote.content.digest,
            round.tree.place(
                part, at: path, over: over, content, modified: file.modified, aside: aside, trashed: trashed)
        else {
            round.tree.removePart(part.name)
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
            round.tree.unfinishedFetches.insert(part.name)
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
                round.tree.unfinishedFetches.insert(part.name)
            } else {
                round.tree.removePart(part.name)
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
