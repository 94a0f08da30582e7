internal import Cryptography
internal import Foundation

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
    /// In the last line: the number of values whose attachments are not in the file.
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
