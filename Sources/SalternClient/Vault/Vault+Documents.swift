internal import Cryptography
public import Foundation

/// One line of a file of documents.
private struct DocumentLine: Codable {
    var type: String
    var version: Int?
    var id: ItemID?
    var collection: String?
    var title: String?
    /// The body, when it is UTF-8.
    var text: String?
    /// The body, when it is not.
    var data: Base64Bytes?
    /// What an attachment's manifest says of it.
    var properties: [String: String]?
    var documents: Int?
    /// At the end: how many items do not open, and are not there.
    var unreadable: Int?

    static let begin = DocumentLine(type: "documents", version: 1)

    init(type: String, version: Int? = nil, documents: Int? = nil) {
        self.type = type
        self.version = version
        self.documents = documents
    }

    init(_ id: ItemID, _ collection: String, _ item: PlainItem, _ properties: [String: String]) {
        self.init(type: "document")
        self.id = id
        self.collection = collection
        title = item.title
        let bytes = item.body.withUnsafeBytes { [UInt8]($0) }
        text = String(validating: bytes, as: UTF8.self)
        if text == nil { data = Base64Bytes(bytes) }
        if !properties.isEmpty { self.properties = properties }
    }

    /// The document that the line holds; nil when it holds none.
    var document: (id: ItemID, collection: String, item: PlainItem, properties: [String: String])? {
        guard type == "document", let id, let collection, text == nil || data == nil,
            let body = text.map({ Array($0.utf8) }) ?? data?.bytes, CollectionName.isValid(collection)
        else { return nil }
        return (id, collection, PlainItem(title: title, body: SecureBytes(copying: body)), properties ?? [:])
    }

    func encoded() throws(VaultError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { throw .unreadable }
        return Array(data) + [UInt8(ascii: "\n")]
    }
}

/// The lines of a file of documents.
private struct DocumentLines {
    private let data: Data
    private var position: Data.Index

    init(_ data: Data) {
        self.data = data
        position = data.startIndex
    }

    /// How many bytes were read.
    var offset: Int { position - data.startIndex }

    /// - Returns: nil at the end.
    mutating func next() throws(VaultError) -> DocumentLine? {
        guard position < data.endIndex else { return nil }
        let end = data[position...].firstIndex(of: UInt8(ascii: "\n")) ?? data.endIndex
        guard let line = try? JSONDecoder().decode(DocumentLine.self, from: data[position..<end]) else {
            throw .unreadable
        }
        position = end == data.endIndex ? end : data.index(after: end)
        return line
    }

    /// - Throws: ``VaultError/unreadable`` unless the file is whole.
    static func check(_ data: Data) throws(VaultError) {
        var lines = DocumentLines(data)
        guard let begin = try lines.next(), begin.type == "documents", begin.version == 1 else { throw .unreadable }
        var count = 0
        while let line = try lines.next() {
            if line.type == "end", line.documents == count, try lines.next() == nil { return }
            guard line.document != nil else { throw .unreadable }
            count += 1
        }
        throw .unreadable
    }
}

/// What an export has written.
public struct DocumentExport: Hashable, Sendable {
    /// How many documents the file has.
    public var documents: Int
    /// Items that do not open: the file does not have them.
    public var unreadable: [ItemID]

    public init(documents: Int, unreadable: [ItemID] = []) {
        self.documents = documents
        self.unreadable = unreadable
    }
}

/// What an import has done.
public struct DocumentImport: Hashable, Sendable {
    /// Documents that were not here.
    public var created = 0
    /// Documents that were here as they are.
    public var unchanged = 0
    /// Documents whose items have another content here: both are kept, these under other ids.
    public var copies = 0

    public init(created: Int = 0, unchanged: Int = 0, copies: Int = 0) {
        self.created = created
        self.unchanged = unchanged
        self.copies = copies
    }
}

extension Vault {
    /// Writes every item that opens to a new file, as text that anybody can read: a JSON object a line, the last of which
    /// says how many documents there are, and how many items are not in it.
    /// - Returns: What is in it, and what is not, for a person to hear of.
    /// - Throws: ``StoreError/unusable`` when there is such a file.
    @discardableResult
    public func exportDocuments(to file: URL, collection: String? = nil) async throws(VaultError) -> DocumentExport {
        _ = try open
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
        var bytes = 0
        for summary in try items(in: collection) {
            guard !Task.isCancelled else { throw .unavailable(.transport(.cancelled)) }
            guard summary.byteCount != nil else {
                done.unreadable.append(summary.id)
                continue
            }
            let found: (item: PlainItem, properties: [String: String])?
            do throws(VaultError) {
                found = try await whole(summary.id)
            } catch {
                // One that does not open, or of which a part is gone, keeps none of the others.
                guard case .unreadable = error else { throw error }
                done.unreadable.append(summary.id)
                continue
            }
            guard let (item, properties) = found else { continue }
            let line = try DocumentLine(summary.id, summary.collection, item, properties).encoded()
            try file.append(line)
            done.documents += 1
            bytes += line.count
            if done.documents.isMultiple(of: 100) { progressObservers.tell(.exported(bytes)) }
        }
        var end = DocumentLine(type: "end", documents: done.documents)
        if !done.unreadable.isEmpty { end.unreadable = done.unreadable.count }
        try file.append(end.encoded())
        return done
    }

    private func whole(_ id: ItemID) async throws(VaultError) -> (PlainItem, [String: String])? {
        guard var item = try item(id) else { return nil }
        let properties = Attachment(item.body)?.properties ?? [:]
        item.body = try await wholeContent(of: item.body)
        return (item, properties)
    }

    /// Puts the documents of a file into the vault: under their ids, and beside what is there when that is something else.
    /// Importing a file twice is importing it once.
    /// - Throws: ``VaultError/unreadable`` for what is no whole file of documents, or cannot be read; nothing was changed
    ///   then.
    @discardableResult
    public func importDocuments(from file: URL) async throws(VaultError) -> DocumentImport {
        guard let data = try? Data(contentsOf: file, options: .mappedIfSafe) else { throw .unreadable }
        try DocumentLines.check(data)
        var lines = DocumentLines(data)
        var done = DocumentImport()
        while let line = try lines.next() {
            guard !Task.isCancelled else { throw .unavailable(.transport(.cancelled)) }
            guard let document = line.document else { continue }
            try await take(document.item, document.id, document.collection, document.properties, &done)
            let count = done.created + done.unchanged + done.copies
            if count.isMultiple(of: 100) { progressObservers.tell(.imported(lines.offset, of: data.count)) }
        }
        progressObservers.tell(.imported(data.count, of: data.count))
        return done
    }

    private func take(
        _ item: PlainItem, _ id: ItemID, _ collection: String, _ properties: [String: String],
        _ done: inout DocumentImport
    ) async throws(VaultError) {
        let known = try readable(id)
        if let known, known.title == item.title {
            let digest = Attachment(known.body)?.digest
            // What begins like a manifest may have been put as it is.
            let isSame =
                digest.map { $0 == SHA256.hash(item.body).bytes }
                ?? (Attachment.isMarked(known.body) && known.body == item.body)
            if isSame { return done.unchanged += 1 }
        }
        var item = item
        if item.body.count > Attachment.chunkByteCount || !properties.isEmpty || Attachment.isMarked(item.body) {
            // The same id each time: the same manifest. In another item than the one that is known.
            let manifest = known.flatMap { Attachment($0.body) }
            let before = AttachmentDraft.Before(named: manifest?.id == id ? Set(manifest?.chunks ?? []) : [])
            do throws(AttachmentError) {
                item.body = try await attach(
                    AttachmentSource(item.body),
                    AttachmentDraft(id, before: before), properties: properties
                ).body()
            } catch {
                throw error.vaultError
            }
        }
        guard let there = try stored({ try store.current(id) }) else {
            try put(item, id, in: collection)
            done.created += 1
            return
        }
        if there.collection == collection, try readable(id) == item { return done.unchanged += 1 }
        // The same document again is the same copy, unless somebody has made that one unreadable, too.
        var copy = try copyID(item, id, collection)
        while try readable(copy) == nil, try stored({ try store.current(copy) }) != nil {
            copy = try copyID(item, copy, collection)
        }
        if try readable(copy) == item { return done.unchanged += 1 }
        try put(item, copy, in: collection)
        done.copies += 1
    }

    /// What is here, when it opens: what does not is another thing than any document.
    private func readable(_ id: ItemID) throws(VaultError) -> PlainItem? {
        do throws(VaultError) {
            return try item(id)
        } catch {
            guard case .unreadable = error else { throw error }
            return nil
        }
    }

    /// Made of the document, and of the vault key: who does not have that cannot try what the document may be.
    private func copyID(_ item: PlainItem, _ id: ItemID, _ collection: String) throws(VaultError) -> ItemID {
        var hash = SHA256.Incremental()
        for part in [collection, item.title ?? ""] {
            hash.update(UInt64(part.utf8.count).bigEndianBytes)
            hash.update(part.utf8)
        }
        hash.update(id.bytes)
        hash.update(item.body)
        let vaultKey = try engine.sealer.keyring.vaultKey
        let key = HKDF.deriveKey(from: vaultKey, info: SealingLabels.documentID.utf8)
        let code = HMACSHA256.authenticationCode(for: hash.finalize().bytes, using: key)
        return ItemID(bytes: code.bytes.prefix(16)) ?? .random()
    }
}
