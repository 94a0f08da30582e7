import HTTPCore

/// Reads the lines of a chunked body (RFC 9112 §7.1): chunk sizes with extensions, and the trailer section. Extensions
/// and trailer fields are checked, counted and thrown away.
struct HTTP1ChunkReader: Sendable {
    private let limits: HTTP1Limits
    private var extensionBytes = 0
    private var trailerFields = 0
    /// How many bytes the next line of the trailer section may have.
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
            // 15 digits always fit into an Int.
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
    /// - Returns: Whether it was the last.
    mutating func readTrailer(_ bytes: UnsafeBufferPointer<UInt8>, line: Range<Int>) throws(HTTP1Error) -> Bool {
        trailerBytesLeft -= line.count + 2
        if line.isEmpty { return true }
        trailerFields += 1
        guard trailerFields <= limits.fieldCount else { throw .tooManyFields(limit: limits.fieldCount) }
        let field = try HTTP1FieldLine(bytes, line: line)
        let name = UnsafeBufferPointer(rebasing: bytes[field.name])
        // What decides about framing and routing is never allowed after the body (RFC 9110 §6.5.1).
        let isForbidden =
            ASCII.equalsIgnoringCase(name, "content-length") || ASCII.equalsIgnoringCase(name, "transfer-encoding")
            || ASCII.equalsIgnoringCase(name, "host")
        if isForbidden { throw .syntax(.forbiddenTrailer) }
        return false
    }
}
