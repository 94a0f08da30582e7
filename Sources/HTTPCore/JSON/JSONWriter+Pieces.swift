/// Documents that are written in pieces, because what they hold is fetched in pieces.
extension JSONWriter {
    /// Begins an object; ``endObject()`` must follow.
    public mutating func beginObject() { open(ASCII.openBrace) }

    public mutating func endObject() { close(ASCII.closeBrace) }

    /// Begins an array; ``endArray()`` must follow.
    public mutating func beginArray() { open(ASCII.openBracket) }

    public mutating func endArray() { close(ASCII.closeBracket) }

    /// Begins a string whose text comes in pieces that need no escapes, such as base64.
    public mutating func beginPlainString() {
        separate()
        bytes.append(ASCII.doubleQuote)
    }

    /// Writes a piece of at most `capacity` bytes that `fill` puts in place; it returns how many these are.
    public mutating func continuePlainString(
        capacity: Int, filledBy fill: (UnsafeMutableBufferPointer<UInt8>) -> Int
    ) {
        let start = bytes.count
        bytes.append(capacity: capacity, filledBy: fill)
        requirePlainText(from: start)
    }

    public mutating func endPlainString() { bytes.append(ASCII.doubleQuote) }

    /// Bytes that wait to be taken.
    public var count: Int { bytes.count }

    /// Takes what was written so far; the document goes on behind it.
    public mutating func takePiece() -> [UInt8] {
        defer { bytes.removeAll(keepingCapacity: true) }
        return Array(bytes)
    }
}
