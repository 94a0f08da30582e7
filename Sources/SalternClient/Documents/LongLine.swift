internal import Cryptography
internal import Foundation

/// A line of a file of documents that is too long to be read as a whole. It has the members without the content, and
/// the range of the content.
struct LongLine {
    enum Failure: Error {
        /// The file cannot be read.
        case source
        case notUTF8
        case malformed
    }

    /// The line without its content.
    let head: DocumentLine
    private let source: AttachmentSource
    private let string: Range<Int64>?
    private let form: JSONContent.Form

    /// The limit of the line without its content, which is held in memory, in bytes.
    private static let headByteLimit = 1 << 20

    /// Reads the line up to its end, and skips the content.
    init(_ source: AttachmentSource, _ range: Range<Int64>) throws(Failure) {
        var reader = ByteWindow(source, range)
        var head: [UInt8] = []
        var depth = 0
        var key: [UInt8] = []
        var isValue = false
        var found: (string: Range<Int64>, form: JSONContent.Form)?
        while let byte = try reader.next() {
            guard head.count < Self.headByteLimit else { throw .malformed }
            head.append(byte)
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ","): if depth == 1 { isValue = false }
            case UInt8(ascii: ":"): if depth == 1 { isValue = true }
            case UInt8(ascii: "\""):
                let form = JSONContent.Form(rawValue: String(decoding: key, as: UTF8.self))
                if depth == 1, isValue, let form {
                    guard found == nil else { throw .malformed }
                    let start = reader.position
                    try reader.skipString()
                    found = (start..<reader.position - 1, form)
                    head.append(byte)
                } else {
                    let string = try reader.string(upTo: Self.headByteLimit - head.count)
                    if depth == 1, !isValue { key = string }
                    head += string + [byte]
                }
            default: break
            }
        }
        guard String(strictUTF8: head) != nil, !head.contains(0) else { throw .notUTF8 }
        guard let line = try? JSONDecoder().decode(DocumentLine.self, from: Data(head)) else { throw .malformed }
        self.head = line
        self.source = source
        string = found?.string
        form = found?.form ?? .text
    }

    /// Decodes the content up to its end.
    func content() throws(Failure) -> ImportedContent {
        guard let string else { throw .malformed }
        let content = try LongContent(source, string, form)
        guard content.byteCount <= Int64(Attachment.chunkByteCount) else { return .long(content) }
        guard let whole = try? content.source.read(0, Int(content.byteCount)) else { throw .source }
        return .short(whole)
    }
}

/// The bytes of a range of a file, with one block in memory.
private struct ByteWindow {
    private let source: AttachmentSource
    private let end: Int64
    private var block: [UInt8] = []
    private var index = 0
    private var blockEnd: Int64

    init(_ source: AttachmentSource, _ range: Range<Int64>) {
        self.source = source
        end = range.upperBound
        blockEnd = range.lowerBound
    }

    /// The offset of the next byte.
    var position: Int64 { blockEnd - Int64(block.count - index) }

    mutating func next() throws(LongLine.Failure) -> UInt8? {
        guard index < block.count else {
            guard try fill() else { return nil }
            return try next()
        }
        defer { index += 1 }
        return block[index]
    }

    private mutating func fill() throws(LongLine.Failure) -> Bool {
        let count = Int(min(end - blockEnd, 256 << 10))
        guard count > 0 else { return false }
        guard let bytes = try? source.read(blockEnd, count), bytes.count == count else { throw .source }
        block = bytes.withUnsafeBytes { Array($0) }
        blockEnd += Int64(count)
        index = 0
        return true
    }

    /// Skips the rest of a string and its closing quotation mark.
    mutating func skipString() throws(LongLine.Failure) {
        while true {
            let (first, found) = (index, firstSpecial())
            index = found ?? block.count
            if found == nil, first <= index {
                guard try fill() else { throw .malformed }
                continue
            }
            guard let byte = try next() else { throw .malformed }
            if byte == UInt8(ascii: "\"") { return }
            guard try next() != nil else { throw .malformed }
        }
    }

    private func firstSpecial() -> Int? {
        block.withUnsafeBytes { bytes in
            var place = index
            while place < bytes.count {
                if bytes[place] == UInt8(ascii: "\"") || bytes[place] == UInt8(ascii: "\\") { return place }
                place += 1
            }
            return nil
        }
    }

    /// Reads the rest of a string and its closing quotation mark, which the result does not contain.
    mutating func string(upTo limit: Int) throws(LongLine.Failure) -> [UInt8] {
        var string: [UInt8] = []
        while let byte = try next() {
            if byte == UInt8(ascii: "\"") { return string }
            string.append(byte)
            if byte == UInt8(ascii: "\\"), let escaped = try next() { string.append(escaped) }
            guard string.count <= limit else { throw .malformed }
        }
        throw .malformed
    }
}
