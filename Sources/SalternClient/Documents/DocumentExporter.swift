internal import Cryptography
internal import Foundation

/// Writes the items of a vault to a file of documents.
struct DocumentExporter {
    let scope: ItemScope
    let items: VaultItems
    /// Reads the pieces of long content.
    let owned: OwnedItems

    /// Writes every item that can be opened to a new file, as plain text. Each line is a JSON object. The last line has
    /// the number of documents, and the numbers of omitted and incomplete items. Long content is written in pieces.
    func export(to file: URL, collection: String?) async throws(VaultError) -> DocumentExport {
        _ = try scope.open
        let target = try NewFile(file)
        do throws(VaultError) {
            let done = try await write(collection, to: target)
            try target.finish()
            return done
        } catch {
            target.remove()
            throw error
        }
    }

    private func write(_ collection: String?, to file: NewFile) async throws(VaultError) -> DocumentExport {
        try file.append(DocumentLine.begin.encoded())
        var done = DocumentExport(documents: 0)
        for summary in try items.items(in: collection) {
            guard !Task.isCancelled else { throw .unavailable(.transport(.cancelled)) }
            guard summary.byteCount != nil else {
                done.unreadable.append(summary.id)
                continue
            }
            let start = try file.byteCount()
            do throws(VaultError) {
                guard let item = try items.item(summary.id) else { continue }
                try await write(item, summary, to: file)
                done.documents += 1
                if Self.hasContentOutside(item) { done.incomplete.append(summary.id) }
            } catch {
                // An item that cannot be opened, or lacks a part of its content, does not prevent the export of others.
                guard case .unreadable = error else { throw error }
                try file.truncate(to: start)
                done.unreadable.append(summary.id)
                continue
            }
            if done.documents.isMultiple(of: 100) {
                scope.observers.progress.notify(.exported(Int(try file.byteCount())))
            }
        }
        var end = DocumentLine(type: "end", documents: done.documents)
        if !done.unreadable.isEmpty { end.unreadable = done.unreadable.count }
        if !done.incomplete.isEmpty { end.incomplete = done.incomplete.count }
        try file.append(end.encoded())
        return done
    }

    /// Returns true for a value with an attachment whose content is not in the value itself.
    private static func hasContentOutside(_ item: PlainItem) -> Bool {
        Attachment(item.body) == nil && Attachment.all(in: item.body).found.contains { !$0.chunks.isEmpty }
    }

    /// Writes one item.
    private func write(_ item: PlainItem, _ summary: ItemSummary, to file: NewFile) async throws(VaultError) {
        let pieces = ContentPieces(of: item.body, in: owned, keepsCopies: false)
        let properties = pieces.attachment?.properties ?? [:]
        if pieces.count == 1 {
            let whole = PlainItem(title: item.title, body: try await pieces.piece(0))
            try file.append(DocumentLine(summary.id, summary.collection, whole, properties).encoded())
            return
        }
        let start = try file.byteCount()
        // Content is written as text up to the first byte that is not UTF-8, and then again as base64.
        for form in [JSONContent.Form.text, .data] {
            let parts = try DocumentLine.parts(summary.id, summary.collection, item.title, properties, form)
            try file.append(parts.head)
            if try await write(pieces, as: form, to: file) {
                try file.append(parts.tail)
                break
            }
            try file.truncate(to: start)
        }
    }

    /// Writes content in a form.
    /// - Returns: False when the content does not have the form.
    private func write(
        _ pieces: ContentPieces, as form: JSONContent.Form, to file: NewFile
    ) async throws(VaultError) -> Bool {
        var content = JSONContent(form)
        for index in 0..<pieces.count {
            guard let characters = content.append(try await pieces.piece(index)) else { return false }
            try file.append(characters)
            scope.observers.progress.notify(.exported(Int(try file.byteCount())))
        }
        guard let last = content.end() else { return false }
        try file.append(last)
        return true
    }
}
