internal import Cryptography
internal import Foundation

/// The content of a document whose line is too long to be read as a whole. Its parts are decoded on demand.
struct LongContent: Sendable {
    let byteCount: Int64
    /// SHA-256 of the content.
    let digest: [UInt8]
    private let string: JSONStringBytes
    private let form: JSONContent.Form

    /// Decodes the content once, from its beginning to its end.
    /// - Parameter range: The characters of a JSON string, without quotation marks.
    init(_ file: AttachmentSource, _ range: Range<Int64>, _ form: JSONContent.Form) throws(LongLine.Failure) {
        var string = JSONStringBytes(file, range)
        var hash = SHA256.Incremental()
        var text = UTF8Pieces()
        var rest: [UInt8] = []
        var count: Int64 = 0
        var isEnded = false
        while let decoded = try string.nextBlock() {
            switch form {
            case .text:
                guard text.append(decoded) != nil else { throw .notUTF8 }
                hash.update(decoded)
                count += Int64(decoded.count)
            case .data:
                let characters = rest + decoded
                let whole = characters.count - characters.count % 4
                rest = Array(characters[whole...])
                guard !isEnded || characters.isEmpty else { throw .malformed }
                let bytes = try Self.bytes(characters[..<whole])
                // Only the last group has padding.
                isEnded = bytes.count < whole / 4 * 3
                hash.update(bytes)
                count += Int64(bytes.count)
            }
        }
        guard rest.isEmpty else { throw .malformed }
        guard text.isComplete else { throw .notUTF8 }
        byteCount = count
        digest = hash.finalize().bytes
        self.string = string
        self.form = form
    }

    var source: AttachmentSource {
        AttachmentSource(byteCount: byteCount) { [self] offset, count in try read(offset, count) }
    }

    private func read(_ offset: Int64, _ count: Int) throws -> SecureBytes {
        switch form {
        case .text: return SecureBytes(copying: try string.read(offset, count))
        case .data:
            // Four characters are three bytes.
            let first = offset / 3
            let end = (offset + Int64(count) + 2) / 3
            let characters = try string.read(first * 4, Int(end - first) * 4)
            let bytes = try Self.bytes(characters[...])
            let skipped = Int(offset - first * 3)
            guard bytes.count >= skipped + count else { throw LongLine.Failure.source }
            return SecureBytes(copying: bytes[skipped..<skipped + count])
        }
    }

    private static func bytes(_ characters: ArraySlice<UInt8>) throws(LongLine.Failure) -> [UInt8] {
        do { return try Base64.decode(characters) } catch { throw .malformed }
    }
}

/// The UTF-8 of a JSON string (RFC 8259 section 7), readable at any offset.
struct JSONStringBytes: Sendable {
    private let file: AttachmentSource
    private let end: Int64
    /// The offsets of blocks: in the UTF-8, and in the file.
    private var marks: [(decoded: Int64, raw: Int64)]

    private static let blockByteCount: Int64 = 256 << 10
    /// The longest escape: a character of two UTF-16 units.
    private static let escapeByteCount = 12

    init(_ file: AttachmentSource, _ range: Range<Int64>) {
        self.file = file
        end = range.upperBound
        marks = [(0, range.lowerBound)]
    }

    /// Decodes the next block, and stores the offset of its end.
    /// - Returns: nil at the end.
    mutating func nextBlock() throws(LongLine.Failure) -> [UInt8]? {
        let last = marks[marks.count - 1]
        guard last.raw < end else { return nil }
        let (decoded, next) = try block(at: last.raw)
        marks.append((last.decoded + Int64(decoded.count), next))
        return decoded
    }

    /// Reads decoded bytes at an offset, after ``nextBlock()`` has processed all blocks.
    func read(_ offset: Int64, _ count: Int) throws(LongLine.Failure) -> [UInt8] {
        var (low, high) = (0, marks.count)
        while low + 1 < high {
            let middle = (low + high) / 2
            if marks[middle].decoded <= offset { low = middle } else { high = middle }
        }
        var (position, raw) = marks[low]
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count, raw < end {
            let (decoded, next) = try block(at: raw)
            let skipped = Int(max(offset - position, 0))
            bytes += decoded.dropFirst(skipped).prefix(count - bytes.count)
            position += Int64(decoded.count)
            raw = next
        }
        guard bytes.count == count else { throw .source }
        return bytes
    }

    private func block(at start: Int64) throws(LongLine.Failure) -> (decoded: [UInt8], next: Int64) {
        let count = Int(min(Self.blockByteCount, end - start))
        guard let raw = try? file.read(start, count), raw.count == count else { throw .source }
        let isLast = start + Int64(count) == end
        return try raw.withUnsafeBytes { bytes throws(LongLine.Failure) in
            var decoded: [UInt8] = []
            decoded.reserveCapacity(bytes.count)
            var index = 0
            while index < bytes.count {
                var plain = index
                while plain < bytes.count, bytes[plain] != UInt8(ascii: "\\") {
                    guard bytes[plain] >= 0x20 else { throw .malformed }
                    plain += 1
                }
                decoded += UnsafeRawBufferPointer(rebasing: bytes[index..<plain])
                index = plain
                if index == bytes.count { break }
                // The next block begins with an escape that may be cut here.
                if !isLast, bytes.count - index < Self.escapeByteCount { break }
                index += try Self.unescape(UnsafeRawBufferPointer(rebasing: bytes[index...]), into: &decoded)
            }
            return (decoded, start + Int64(index))
        }
    }

    /// Decodes one escape.
    /// - Returns: The length of the escape, in bytes.
    private static func unescape(
        _ bytes: UnsafeRawBufferPointer, into decoded: inout [UInt8]
    ) throws(LongLine.Failure) -> Int {
        guard bytes.count >= 2 else { throw .malformed }
        switch bytes[1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): decoded.append(bytes[1])
        case UInt8(ascii: "b"): decoded.append(0x08)
        case UInt8(ascii: "f"): decoded.append(0x0c)
        case UInt8(ascii: "n"): decoded.append(0x0a)
        case UInt8(ascii: "r"): decoded.append(0x0d)
        case UInt8(ascii: "t"): decoded.append(0x09)
        case UInt8(ascii: "u"):
            let unit = try self.unit(bytes, at: 2)
            guard UTF16.isLeadSurrogate(unit) else {
                try append(UInt32(unit), to: &decoded)
                return 6
            }
            guard bytes.count >= 12, bytes[6] == UInt8(ascii: "\\"), bytes[7] == UInt8(ascii: "u")
            else { throw .malformed }
            let trail = try self.unit(bytes, at: 8)
            guard UTF16.isTrailSurrogate(trail) else { throw .malformed }
            try append(0x1_0000 + (UInt32(unit & 0x3ff) << 10 | UInt32(trail & 0x3ff)), to: &decoded)
            return 12
        default: throw .malformed
        }
        return 2
    }

    private static func append(_ value: UInt32, to decoded: inout [UInt8]) throws(LongLine.Failure) {
        guard let scalar = Unicode.Scalar(value), let bytes = UTF8.encode(scalar) else { throw .malformed }
        decoded.append(contentsOf: bytes)
    }

    private static func unit(_ bytes: UnsafeRawBufferPointer, at start: Int) throws(LongLine.Failure) -> UInt16 {
        guard bytes.count >= start + 4 else { throw .malformed }
        var unit: UInt16 = 0
        for index in start..<start + 4 {
            let digit: UInt8
            switch bytes[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[index] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[index] - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = bytes[index] - UInt8(ascii: "A") + 10
            default: throw .malformed
            }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }
}
