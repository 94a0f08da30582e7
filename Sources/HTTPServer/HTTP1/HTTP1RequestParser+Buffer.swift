internal import HTTPCore

extension HTTP1RequestParser {
    /// Finds the next line.
    ///
    /// - Parameters:
    ///   - maximum: How many bytes the line may have with its CRLF.
    ///   - error: What to throw when it has more, also when its end has not come yet.
    /// - Returns: Where the line is after `start`, without its CRLF; nil when it has not come as a whole.
    /// - Throws: `error`, or `bare_line_feed` when the line does not end with CRLF.
    mutating func takeLine(maximum: Int, else error: HTTP1Error) throws(HTTP1Error) -> Range<Int>? {
        let buffer = buffer
        return try buffer.withBytes(from: start) { bytes throws(HTTP1Error) in
            try findLine(in: bytes, from: lineStart, maximum: maximum, else: error)
        }
    }

    /// The same, for a line that begins at `lineStart` of `bytes`, which are those from `start` on.
    @inline(__always)
    mutating func findLine(
        in bytes: UnsafeBufferPointer<UInt8>, from lineStart: Int, maximum: Int, else error: HTTP1Error
    ) throws(HTTP1Error) -> Range<Int>? {
        guard let lineFeed = ByteSearch.lineFeed(in: bytes, from: scanned) else {
            scanned = bytes.count
            if scanned - lineStart >= maximum { throw error }
            return nil
        }
        guard lineFeed < lineStart + maximum else { throw error }
        scanned = lineFeed + 1
        guard lineFeed > lineStart, bytes[lineFeed - 1] == ASCII.carriageReturn else { throw .syntax(.bareLineFeed) }
        return lineStart..<(lineFeed - 1)
    }

    /// Where the line that is being searched begins after `start`: the lines of a head stay until it is whole.
    private var lineStart: Int {
        if case .head = state { head.length } else { 0 }
    }

    /// Steps over one empty line before a request line: old clients send one behind a body (RFC 9112 §2.2).
    ///
    /// - Returns: Whether a request line may begin; false when that cannot be told yet.
    mutating func skipEmptyLine() throws(HTTP1Error) -> Bool {
        // Something that is evidently not HTTP, such as TLS, is not waited for.
        while head.length == 0, start < buffer.count, !ASCII.isTokenCharacter(buffer[start]) {
            guard !head.hasSkippedLine, buffer[start] == ASCII.carriageReturn else {
                throw .syntax(.malformedRequestLine)
            }
            guard start + 1 < buffer.count else { return false }
            guard buffer[start + 1] == ASCII.lineFeed else { throw .syntax(.malformedRequestLine) }
            head.hasSkippedLine = true
            use(2)
        }
        return true
    }

    /// Drops all that was read as lines.
    mutating func dropLine() { use(scanned) }

    /// At most so many bytes from the front of the buffer, or nil when there are none. A buffer that holds nothing
    /// else is handed over instead of copied.
    mutating func takeBytes(atMost maximum: Int) -> ZeroizingBuffer? {
        let count = min(maximum, buffer.count - start)
        guard count > 0 else { return nil }
        received += count
        if start == 0, count == buffer.count {
            let bytes = buffer
            buffer = ZeroizingBuffer()
            return bytes
        }
        let bytes = ZeroizingBuffer(buffer[start..<(start + count)])
        start += count
        dropUsedBytes()
        return bytes
    }

    /// Forgets so many bytes at the front, which have been read.
    mutating func use(_ count: Int) {
        start += count
        scanned = max(0, scanned - count)
        dropUsedBytes()
    }

    private mutating func dropUsedBytes() {
        guard start == buffer.count else { return }
        // A connection that is idle keeps no more memory than a usual request needs.
        buffer.removeAll(keepingCapacity: buffer.capacity <= 4 * 1024)
        start = 0
    }
}

extension ZeroizingBuffer {
    /// Calls `body` with the bytes from `start` on.
    func withBytes<Result, Failure: Error>(
        from start: Int, _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes { bytes throws(Failure) in
            try body(UnsafeRawBufferPointer(rebasing: bytes[start...]).assumingMemoryBound(to: UInt8.self))
        }
    }
}
