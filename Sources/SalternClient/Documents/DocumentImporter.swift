internal import Cryptography
internal import Foundation

/// Puts the documents of a file into a vault.
struct DocumentImporter {
    let scope: ItemScope
    let items: VaultItems
    let attachments: AttachmentService

    /// Puts the documents of a file into the vault, under their ids. If an item has other content, the document becomes
    /// a copy under another id. Importing a file again changes nothing.
    func importAll(from file: URL) async throws(VaultError) -> DocumentImport {
        let source: AttachmentSource
        do { source = try AttachmentSource(file: file) } catch { throw .unreadable }
        try DocumentLines.check(source)
        var lines = DocumentLines(source)
        var done = DocumentImport()
        while let line = try lines.next() {
            guard !Task.isCancelled else { throw .unavailable(.transport(.cancelled)) }
            guard let document = line.document else { continue }
            try await take(document, &done)
            let count = done.created + done.unchanged + done.copies
            if count.isMultiple(of: 100) {
                scope.observers.progress.notify(.imported(Int(lines.offset), of: Int(source.byteCount)))
            }
        }
        scope.observers.progress.notify(.imported(Int(source.byteCount), of: Int(source.byteCount)))
        return done
    }

    private func take(_ document: ImportedDocument, _ done: inout DocumentImport) async throws(VaultError) {
        let (id, collection, content) = (document.id, document.collection, document.content)
        let known = try readable(id)
        if let known, known.hasTitle(document.title) {
            // A body that is long, or begins like a manifest, may have been put as content.
            let isContent = Attachment.isMarked(known.body) || known.body.count > Attachment.chunkByteCount
            let digest = Attachment(known.body)?.digest ?? (isContent ? SHA256.hash(known.body).bytes : nil)
            if let digest, digest == content.digest { return done.unchanged += 1 }
        }
        let item = PlainItem(title: document.title, body: try await body(of: document, known))
        guard let there = try scope.stored({ try scope.store.current(id) }) else {
            try items.put(item, id, in: collection)
            done.created += 1
            return
        }
        if there.collection == collection, try readable(id) == item { return done.unchanged += 1 }
        // The same document gets the same copy, unless that copy can no longer be opened.
        var copy = try copyID(item, id, collection)
        while try readable(copy) == nil, try scope.stored({ try scope.store.current(copy) }) != nil {
            copy = try copyID(item, copy, collection)
        }
        if try readable(copy) == item { return done.unchanged += 1 }
        try items.put(item, copy, in: collection)
        done.copies += 1
    }

    /// Returns the body of a document's item: its content, or the manifest of an attachment that is sent now.
    private func body(
        of document: ImportedDocument, _ known: PlainItem?
    ) async throws(VaultError) -> SecureBytes {
        if let content = document.content.whole, content.count <= Attachment.chunkByteCount,
            document.properties.isEmpty, !Attachment.isMarked(content)
        {
            return content
        }
        // The same id gives the same manifest. It is put in another item than the present one.
        let manifest = known.flatMap { Attachment($0.body) }
        let before = AttachmentDraft.Before(
            named: manifest?.id == document.id ? Set(manifest?.chunks ?? []) : [])
        do throws(VaultError) {
            return try await attachments.attach(
                document.content.source, AttachmentDraft(document.id, before: before),
                properties: document.properties, progress: { _ in }
            ).body()
        } catch {
            throw error.ofContent
        }
    }

    /// Returns the present item if it can be opened. An unreadable item differs from any document.
    private func readable(_ id: ItemID) throws(VaultError) -> PlainItem? {
        do throws(VaultError) {
            return try items.item(id)
        } catch {
            guard case .unreadable = error else { throw error }
            return nil
        }
    }

    /// Derives an id from the document and the vault key. Without that key, guesses of the document cannot be checked.
    private func copyID(_ item: PlainItem, _ id: ItemID, _ collection: String) throws(VaultError) -> ItemID {
        var hash = SHA256.Incremental()
        for part in [collection, item.title ?? ""] {
            hash.update(UInt64(part.utf8.count).bigEndianBytes)
            hash.update(part.utf8)
        }
        hash.update(id.bytes)
        hash.update(item.body)
        let key = try scope.sealer.documentKey()
        let code = HMACSHA256.authenticationCode(for: hash.finalize().bytes, using: key)
        return ItemID(bytes: code.bytes.prefix(16)) ?? .random()
    }
}

/// The reason for which a file of documents was not imported.
public struct DocumentFault: Error, Hashable, Sendable {
    /// The kinds of faults. The raw values are stable, for scripts.
    public enum Reason: String, Sendable {
        /// The line is not UTF-8.
        case notUTF8 = "not_utf8"
        /// The first line is not that of a file of documents, or it is that of a later version.
        case noBeginning = "no_beginning"
        /// The line is neither a document nor the end.
        case noDocument = "no_document"
        /// The last line names another number of documents than the file contains.
        case wrongCount = "wrong_count"
        /// The file continues after its last line.
        case afterEnd = "after_end"
        /// The file ends without its last line.
        case noEnd = "no_end"
    }

    /// The number of the line in the file, from 1. Empty lines count.
    public let line: Int
    /// The fault of the line.
    public let reason: Reason

    /// Creates a fault.
    /// - Parameter line: The number of the line, from 1.
    public init(line: Int, reason: Reason) {
        self.line = line
        self.reason = reason
    }
}
