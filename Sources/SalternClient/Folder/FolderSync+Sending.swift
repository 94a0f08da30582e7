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
        guard let (source, modified) = round.tree.source(path), source.byteCount == content.byteCount else {
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
