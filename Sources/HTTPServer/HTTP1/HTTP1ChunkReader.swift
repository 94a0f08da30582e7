import HTTPCore

/// Reads the lines of a chunked body (RFC 9112 §7.1): chunk sizes with extensions, and the trailer section. Extensions
/// and trailer fields are checked, counted and discarded.
struct HTTP1ChunkReader: Sendable {
    private let limits: HTTP1Limits
    private var extensionBytes = 0
    private var trailerFields = 0
    /// The maximum length of the next line of the trailer section, in bytes.
    private(set) var trailerBytesLeft: Int

    init(limits: HTTP1Limits) {
        self.limits = limits
        trailerBytesLeft = limits.header
    }

    /// Reads the line before the data of a chunk.
    ///
    /// - Returns: The size of the chunk; 0 for the last.
    mutating func readSize(_ bytes: UnsafeBufferPointer<UInt8>, line: Range<Int>) throws(HTTP1Error) -> Int {
        var position = line.lowerBound
        var size = 0
        while position < line.upperBound, let digit = ASCII.hexValue(bytes[position]) {
            // 15 digits always fit in an Int.
            guard position - line.lowerBound < 15 else { throw .syntax(.chunkTooLarge) }
            size = size << 4 | Int(digit)
            position += 1
        }
        guard position > line.lowerBound else { throw .syntax(.malformedChunk) }
        if position == line.upperBound { return size }
        extensionBytes += line.upperBound - position
        guard extensionBytes <= limits.chunkExtensions,
            HTTP1ChunkExtensions.isValid(UnsafeBufferPointer(rebasing: bytes[position..<line.upperBound]))
        else { throw .syntax(.malformedChunk) }
        return size
    }

    /// Reads a line of the trailer section.
    ///
    /// - Returns: True for the last line.
    mutating func readTrailer(_ bytes: UnsafeBufferPointer<UInt8>, line: Range<Int>) throws(HTTP1Error) -> Bool {
        trailerBytesLeft -= line.count + 2
        if line.isEmpty { return true }
        trailerFields += 1
        guard trailerFields <= limits.fieldCount else { throw .tooManyFields(limit: limits.fieldCount) }
        let field = try HTTP1FieldLine(bytes, line: line)
        let name = UnsafeBufferPointer(rebasing: bytes[field.name])
        // Fields for framing and routing are not permitted after the body (RFC 9110 §6.5.1).
        let isForbidden =
            ASCII.equalsIgnoringCase(name, "content-length") || ASCII.equalsIgnoringCase(name, "transfer-encoding")
            || ASCII.equalsIgnoringCase(name, "host")
        if isForbidden { throw .syntax(.forbiddenTrailer) }
        return false
    }
}

/// The grammar of chunk extensions (RFC 9112 §7.1.1) without its "bad" white space: `*( ";" token [ "=" ( token /
/// quoted-string ) ] )`.
///
/// Parsers that disagree about that space permit request smuggling, and no client needs it.
enum HTTP1ChunkExtensions {
    static func isValid(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var position = 0
        while position < text.count {
            guard skip(ASCII.semicolon, text, &position), skipToken(text, &position) else { return false }
            guard skip(ASCII.equals, text, &position) else { continue }
            guard skipToken(text, &position) || skipQuotedString(text, &position) else { return false }
        }
        return true
    }

    private static func skip(_ byte: UInt8, _ text: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        guard position < text.count, text[position] == byte else { return false }
        position += 1
        return true
    }

    private static func skipToken(_ text: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        let start = position
        while position < text.count, ASCII.isTokenCharacter(text[position]) { position += 1 }
        return position > start
    }

    private static func skipQuotedString(_ text: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        guard skip(ASCII.doubleQuote, text, &position) else { return false }
        while position < text.count {
            var byte = text[position]
            position += 1
            if byte == ASCII.doubleQuote { return true }
            if byte == ASCII.backslash {
                guard position < text.count else { return false }
                byte = text[position]
                position += 1
            }
            guard byte >= 0x20 && byte != 0x7F || byte == ASCII.tab else { return false }
        }
        return false
    }
}

/// One field line: a token, a colon, and a value with optional white space around it (RFC 9112 §5).
struct HTTP1FieldLine {
    let name: Range<Int>
    let value: Range<Int>

    /// Reads a line without its CRLF, which is not empty.
    init(_ bytes: UnsafeBufferPointer<UInt8>, line: Range<Int>) throws(HTTP1Error) {
        var position = line.lowerBound
        if bytes[position] == ASCII.space || bytes[position] == ASCII.tab { throw .syntax(.foldedField) }
        while position < line.upperBound, ASCII.isTokenCharacter(bytes[position]) { position += 1 }
        guard position < line.upperBound, bytes[position] == ASCII.colon, position > line.lowerBound else {
            let isSpace =
                position < line.upperBound && position > line.lowerBound
                && (bytes[position] == ASCII.space || bytes[position] == ASCII.tab)
            throw .syntax(isSpace ? .spaceBeforeColon : .malformedFieldName)
        }
        name = line.lowerBound..<position
        var start = position + 1
        var end = line.upperBound
        while start < end, bytes[start] == ASCII.space || bytes[start] == ASCII.tab { start += 1 }
        while end > start, bytes[end - 1] == ASCII.space || bytes[end - 1] == ASCII.tab { end -= 1 }
        value = start..<end
        let text = UnsafeBufferPointer(rebasing: bytes[value])
        guard ByteSearch.isFieldValue(text) else {
            throw .syntax(text.contains(ASCII.carriageReturn) ? .bareCarriageReturn : .malformedFieldValue)
        }
    }
}

/// Searches in bytes, eight at a time.
enum ByteSearch {
    /// Returns the position of the first line feed at or after `start`, or nil.
    static func lineFeed(in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        let raw = UnsafeRawBufferPointer(bytes)
        var position = start
        while position + 8 <= raw.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            let difference = word ^ (ones &* 0x0A)
            // The lowest mark is exact: a borrow can only touch bytes above a byte that is zero.
            let marks = (difference &- ones) & ~difference & tops
            if marks != 0 { return position + marks.trailingZeroBitCount / 8 }
            position += 8
        }
        while position < raw.count {
            if raw[position] == 0x0A { return position }
            position += 1
        }
        return nil
    }

    /// Returns whether all bytes are permitted in a field value (RFC 9110 §5.5): no control character except the tab.
    static func isFieldValue(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        let raw = UnsafeRawBufferPointer(bytes)
        var position = 0
        while position + 8 <= raw.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            let delete = word ^ (ones &* 0x7F)
            let suspicious = (word &- ones &* 0x20) & ~word | (delete &- ones) & ~delete
            // Marks are exact only for the lowest byte, and a tab is permitted. Marked words are checked byte by byte.
            if suspicious & tops != 0 {
                for offset in 0..<8 where !isFieldValueByte(raw[position + offset]) { return false }
            }
            position += 8
        }
        while position < raw.count {
            guard isFieldValueByte(raw[position]) else { return false }
            position += 1
        }
        return true
    }

    @inline(__always)
    private static func isFieldValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }
}
