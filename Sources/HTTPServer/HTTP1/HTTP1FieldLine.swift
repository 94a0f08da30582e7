import HTTPCore

/// One field line: a token, a colon, and a value with optional white space around it (RFC 9112 §5).
struct HTTP1FieldLine {
    let name: Range<Int>
    let value: Range<Int>

    /// Reads the line at `line`, which is not empty and has lost its CRLF.
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
