internal import Cryptography
internal import Foundation

/// The document of a line.
struct ImportedDocument {
    let id: ItemID
    let collection: String
    let title: String?
    let properties: [String: String]
    let content: ImportedContent
}

/// The content of a document: in memory, or as a range of the file.
enum ImportedContent {
    case short(SecureBytes)
    case long(LongContent)

    var source: AttachmentSource {
        switch self {
        case .short(let content): AttachmentSource(content)
        case .long(let content): content.source
        }
    }

    /// SHA-256 of the content.
    var digest: [UInt8] {
        switch self {
        case .short(let content): SHA256.hash(content).bytes
        case .long(let content): content.digest
        }
    }

    /// The content, if it is in memory.
    var whole: SecureBytes? { if case .short(let content) = self { content } else { nil } }
}

/// The lines of a file of documents, read with a few megabytes of memory. Empty lines are skipped.
struct DocumentLines {
    /// A line and its document, if it has one.
    struct Line {
        let head: DocumentLine
        let document: ImportedDocument?
    }

    /// The longest line that is read as a whole, in bytes.
    static let wholeLineLimit: Int64 = 2 << 20
    private static let blockByteCount: Int64 = 256 << 10
    private static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

    private let source: AttachmentSource
    /// The offset of the next line.
    private(set) var offset: Int64 = 0
    /// The number of the last line that was read.
    private(set) var number = 0
    private var block = SecureBytes(copying: [UInt8]())
    private var blockStart: Int64 = 0

    init(_ source: AttachmentSource) { self.source = source }

    /// Reads the next line.
    /// - Returns: nil at the end.
    /// - Throws: ``VaultError/invalidDocuments(_:)``.
    mutating func next() throws(VaultError) -> Line? {
        if offset == 0, try bytes(0, min(3, source.byteCount)) == Self.byteOrderMark { offset = 3 }
        while offset < source.byteCount {
            let start = offset
            let end = try lineEnd(from: start)
            offset = min(end + 1, source.byteCount)
            number += 1
            if end - start > Self.wholeLineLimit { return try longLine(start..<end) }
            let line = try bytes(start, end - start)
            if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }) { continue }
            return try shortLine(line)
        }
        return nil
    }

    func fault(_ reason: DocumentFault.Reason) -> VaultError {
        .invalidDocuments(DocumentFault(line: max(number, 1), reason: reason))
    }

    private func shortLine(_ bytes: [UInt8]) throws(VaultError) -> Line {
        // JSONDecoder also accepts UTF-16, in which a line cannot be read.
        guard !bytes.contains(0), String(strictUTF8: bytes) != nil else { throw fault(.notUTF8) }
        guard let head = try? JSONDecoder().decode(DocumentLine.self, from: Data(bytes)) else {
            throw fault(.noDocument)
        }
        guard head.isDocument, let id = head.id, let collection = head.collection,
            let body = head.text.map({ Array($0.utf8) }) ?? head.data?.bytes
        else { return Line(head: head, document: nil) }
        return Line(
            head: head,
            document: ImportedDocument(
                id: id, collection: collection, title: head.title, properties: head.properties ?? [:],
                content: .short(SecureBytes(copying: body))))
    }

    private func longLine(_ range: Range<Int64>) throws(VaultError) -> Line {
        do throws(LongLine.Failure) {
            let line = try LongLine(source, range)
            guard line.head.isDocument, let id = line.head.id, let collection = line.head.collection else {
                return Line(head: line.head, document: nil)
            }
            return Line(
                head: line.head,
                document: ImportedDocument(
                    id: id, collection: collection, title: line.head.title, properties: line.head.properties ?? [:],
                    content: try line.content()))
        } catch {
            switch error {
            case .source: throw .unreadable
            case .notUTF8: throw fault(.notUTF8)
            case .malformed: throw fault(.noDocument)
            }
        }
    }

    /// Returns the offset of the line feed that ends a line, or of the file's end.
    private mutating func lineEnd(from start: Int64) throws(VaultError) -> Int64 {
        var position = start
        while position < source.byteCount {
            if position < blockStart || position >= blockStart + Int64(block.count) {
                blockStart = position
                block = try read(position, min(Self.blockByteCount, source.byteCount - position))
            }
            let first = Int(position - blockStart)
            let found = block.withUnsafeBytes { bytes in
                bytes.baseAddress.flatMap { memchr($0 + first, 0x0a, bytes.count - first) }
                    .map { UnsafeRawPointer($0) - (bytes.baseAddress ?? UnsafeRawPointer($0)) }
            }
            if let found { return blockStart + Int64(found) }
            position = blockStart + Int64(block.count)
        }
        return source.byteCount
    }

    private func bytes(_ start: Int64, _ count: Int64) throws(VaultError) -> [UInt8] {
        let first = start - blockStart
        if first >= 0, first + count <= Int64(block.count) {
            return block.withUnsafeBytes { Array($0[Int(first)..<Int(first + count)]) }
        }
        return try read(start, count).withUnsafeBytes { Array($0) }
    }

    private func read(_ start: Int64, _ count: Int64) throws(VaultError) -> SecureBytes {
        guard let bytes = try? source.read(start, Int(count)), bytes.count == count else { throw .unreadable }
        return bytes
    }
}

extension DocumentLines {
    /// Reads and checks the whole file.
    /// - Throws: ``VaultError/invalidDocuments(_:)`` unless it is a complete file of documents.
    static func check(_ source: AttachmentSource) throws(VaultError) {
        var lines = DocumentLines(source)
        guard let begin = try lines.next(), begin.head.type == "documents", begin.head.version == 1 else {
            throw lines.fault(.noBeginning)
        }
        var count = 0
        while let line = try lines.next() {
            if line.head.type == "end" {
                guard line.head.documents == count else { throw lines.fault(.wrongCount) }
                do throws(VaultError) {
                    if try lines.next() == nil { return }
                } catch {
                    guard case .invalidDocuments = error else { throw error }
                }
                throw lines.fault(.afterEnd)
            }
            guard line.document != nil else { throw lines.fault(.noDocument) }
            count += 1
        }
        throw lines.fault(.noEnd)
    }
}

/// One line of a file of documents.
struct DocumentLine: Codable {
    var type: String
    var version: Int?
    var id: ItemID?
    var collection: String?
    var title: String?
    /// The body, if it is UTF-8.
    var text: String?
    /// The body, if it is not UTF-8.
    var data: Base64Bytes?
    /// The properties of an attachment's manifest.
    var properties: [String: String]?
    var documents: Int?
    /// In the last line: the number of items that cannot be opened, and are omitted.
    var unreadable: Int?
    /// In the last line: the number of values without their attachments in the file.
    var incomplete: Int?

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
        text = String(strictUTF8: bytes)
        if text == nil { data = Base64Bytes(bytes) }
        if !properties.isEmpty { self.properties = properties }
    }

    /// Encodes the line in two parts, before and after the content. ``JSONContent`` writes the content.
    static func parts(
        _ id: ItemID, _ collection: String, _ title: String?, _ properties: [String: String], _ form: JSONContent.Form
    ) throws(VaultError) -> (head: [UInt8], tail: [UInt8]) {
        var line = DocumentLine(
            id, collection, PlainItem(title: title, body: SecureBytes(copying: [UInt8]())), properties)
        line.text = form == .text ? "" : nil
        line.data = form == .data ? Base64Bytes([]) : nil
        guard let parts = JSONContent.split(try line.encoded(), at: form) else { throw .unreadable }
        return parts
    }

    /// True for a line with a document.
    var isDocument: Bool {
        type == "document" && id != nil && (text == nil) != (data == nil)
            && collection.map(CollectionName.isValid) == true
    }

    func encoded() throws(VaultError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { throw .unreadable }
        return Array(data) + [UInt8(ascii: "\n")]
    }
}
