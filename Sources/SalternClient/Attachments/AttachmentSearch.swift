internal import Cryptography
internal import Foundation

/// Finds the attachments that an item's body names.
///
/// A body is a manifest, or a value of an app: JSON or a property list. In a value the search finds each encoded
/// ``Attachment``. It also finds manifests (``Attachment/body()``) as text, as base64 or as an array of bytes. Both are
/// found in encoded values within a value. An unreadable body that seems to name an attachment can name any chunk.
struct AttachmentSearch {
    private(set) var found: [Attachment] = []
    /// False when something seems to be an attachment and cannot be read. A sweep then removes nothing.
    private(set) var isWhole = true

    init(in body: SecureBytes) { search(body, depth: 0) }

    /// The maximum number of levels of nested encoded values that are searched.
    private static let depthLimit = 8

    private mutating func search(_ body: SecureBytes, depth: Int) {
        if let attachment = Attachment(body) { return found.append(attachment) }
        let (marks, isManifest) = body.withUnsafeBytes { (Marks(in: $0), Marks.isBeginningOfManifest($0)) }
        if isManifest { return isWhole = false }
        guard marks.hasAny else { return }
        guard depth < Self.depthLimit else { return isWhole = false }
        let bytes = body.withUnsafeBytes { [UInt8]($0) }
        if let tree = JSONTree(bytes) {
            collect(json: tree, depth)
        } else if let tree = PropertyListTree(bytes) {
            collect(list: tree.value, depth)
        } else if marks.isUnreadableValue {
            isWhole = false
        }
    }

    // MARK: JSON

    private mutating func collect(json tree: JSONTree, _ depth: Int) {
        switch tree {
        case .object(let members):
            if members[Attachment.CodingKeys.version.rawValue] == nil {
                for member in members.values { collect(json: member, depth) }
            } else if let one = try? JSONDecoder().decode(Attachment.self, from: Data(tree.text)) {
                found.append(one)
            } else {
                isWhole = false
            }
        case .array(let elements):
            if let bytes = Self.bytes(elements) {
                search(SecureBytes(copying: bytes), depth: depth + 1)
            } else {
                for element in elements { collect(json: element, depth) }
            }
        case .string(let text, _): collect(text: text, depth)
        case .literal: return
        }
    }

    /// Searches a text, which can be a manifest or a value, plain or in base64.
    private mutating func collect(text: String, _ depth: Int) {
        let bytes = SecureBytes(copying: text.utf8)
        let marks = bytes.withUnsafeBytes { Marks(in: $0) }
        if marks.hasBase64 {
            let compact = text.filter { !$0.isWhitespace }
            guard let data = Data(base64Encoded: compact) else { return isWhole = false }
            let decoded = Self.bytes(data)
            guard decoded.withUnsafeBytes({ Marks(in: $0).hasAny }) else { return isWhole = false }
            search(decoded, depth: depth + 1)
        } else if marks.hasAny {
            search(bytes, depth: depth + 1)
        }
    }

    /// Decodes an array of numbers into bytes. Returns nil for another array, and for one that is too short for a
    /// manifest.
    private static func bytes(_ elements: [JSONTree]) -> [UInt8]? {
        guard elements.count >= Marks.name.count else { return nil }
        var bytes: [UInt8] = []
        for element in elements {
            guard case .literal(let text) = element, let byte = UInt8(String(decoding: text, as: UTF8.self)) else {
                return nil
            }
            bytes.append(byte)
        }
        return bytes
    }

    private static func bytes(_ data: Data) -> SecureBytes { data.withUnsafeBytes { SecureBytes(copying: $0) } }

    // MARK: Property lists

    private mutating func collect(list value: Any, _ depth: Int) {
        switch value {
        case let members as [String: Any]:
            if members[Attachment.CodingKeys.version.rawValue] == nil {
                for member in members.values { collect(list: member, depth) }
            } else if let data = try? PropertyListSerialization.data(
                fromPropertyList: members, format: .binary, options: 0),
                let one = try? PropertyListDecoder().decode(Attachment.self, from: data)
            {
                found.append(one)
            } else {
                isWhole = false
            }
        case let elements as [Any]: for element in elements { collect(list: element, depth) }
        case let data as Data: search(Self.bytes(data), depth: depth + 1)
        case let text as String: collect(text: text, depth)
        default: return
        }
    }

    private struct PropertyListTree {
        let value: Any

        init?(_ bytes: [UInt8]) {
            guard ["bplist00", "<?xml", "<!DOCTYPE plist", "<plist"].contains(where: { bytes.starts(with: $0.utf8) }),
                let value = try? PropertyListSerialization.propertyList(from: Data(bytes), options: [], format: nil)
            else { return nil }
            self.value = value
        }
    }
}

extension Attachment {
    /// Finds the attachments in an item's body.
    /// - Returns: Also true when all of them can be read. The chunks of an unreadable one are unknown.
    static func all(in body: SecureBytes) -> (found: [Attachment], isWhole: Bool) {
        let search = AttachmentSearch(in: body)
        return (search.found, search.isWhole)
    }
}

/// The signs of attachments in bytes, which are found without decoding.
private struct Marks {
    /// The name in each manifest and in each encoded attachment.
    static let name = Array("saltern-attachment".utf8)
    private static let other = Array("chunkByteCount".utf8)

    /// In base64 the name has three forms, which depend on its distance from the beginning.
    private static let base64Forms = (0...2).map { distance in
        let text = Base64.encodeToString([UInt8](repeating: 0, count: distance) + name)
        // Characters that depend on a neighbouring byte are left out.
        return Array(text.utf8.dropFirst([0, 2, 3][distance]).prefix(22))
    }

    /// The name as an array of numbers, in JSON without spaces.
    private static let numbers = Array(name.map { String($0) }.joined(separator: ",").utf8)

    private var hasName = false
    private var hasNumbers = false
    private var hasEscapes = false
    private var hasOther = false
    private(set) var hasBase64 = false

    var hasAny: Bool { hasName || hasBase64 || hasNumbers || hasEscapes }

    /// True when bytes that are neither JSON nor a property list seem to be a value with an attachment. The name alone
    /// is not sufficient.
    var isUnreadableValue: Bool { hasName && hasOther || hasBase64 }

    init(in bytes: UnsafeRawBufferPointer) {
        hasName = Self.contains(bytes, Self.name)
        hasBase64 = Self.base64Forms.contains { Self.contains(bytes, $0) }
        hasNumbers = Self.contains(bytes, Self.numbers)
        // JSON can contain any character of a name as an escape.
        hasEscapes = Self.contains(bytes, Array("\\u00".utf8))
        hasOther = hasName && Self.contains(bytes, Self.other)
    }

    /// Returns true when the bytes begin like a manifest of this or of a later version.
    static func isBeginningOfManifest(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.starts(with: name), bytes.count > name.count + 3, bytes[name.count] == UInt8(ascii: "-") else {
            return false
        }
        let rest = bytes[(name.count + 1)...].prefix(24)
        let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return !digits.isEmpty && rest.dropFirst(digits.count).starts(with: "\n{".utf8)
    }

    private static func contains(_ bytes: UnsafeRawBufferPointer, _ text: [UInt8]) -> Bool {
        guard let base = bytes.baseAddress, let first = text.first, bytes.count >= text.count else { return false }
        let end = bytes.count - text.count + 1
        var start = 0
        while start < end, let match = memchr(base + start, Int32(first), end - start) {
            let offset = UnsafeRawPointer(match) - base
            if memcmp(base + offset, text, text.count) == 0 { return true }
            start = offset + 1
        }
        return false
    }
}
