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
        let lineStart = lineStart
        let found = buffer.withBytes(from: start) { ByteSearch.lineFeed(in: $0, from: scanned) }
        guard let lineFeed = found else {
            scanned = buffer.count - start
            if scanned - lineStart >= maximum { throw error }
            return nil
        }
        guard lineFeed < lineStart + maximum else { throw error }
        scanned = lineFeed + 1
        guard lineFeed > lineStart, buffer[start + lineFeed - 1] == 0x0D else { throw .syntax(.bareLineFeed) }
        return lineStart..<(lineFeed - 1)
    }

    /// Where the line that is being searched begins after `start`: the lines of a head stay until it is whole.
    private var lineStart: Int {
        if case .head = state { head.length } else { 0 }
    }

    /// Drops all that was read as lines.
    mutating func dropLine() {
        start += scanned
        scanned = 0
        dropUsedBytes()
    }

    /// At most so many bytes from the front of the buffer, or nil when there are none. A buffer that holds nothing
    /// else is handed over instead of copied.
    mutating func takeBytes(atMost maximum: Int) -> WipedBytes? {
        let count = min(maximum, buffer.count - start)
        guard count > 0 else { return nil }
        received += count
        if start == 0, count == buffer.count {
            let bytes = buffer
            buffer = WipedBytes()
            return bytes
        }
        let bytes = WipedBytes(buffer[start..<(start + count)])
        start += count
        dropUsedBytes()
        return bytes
    }

    /// Steps over the CRLF behind the data of a chunk; false when it has not come as a whole.
    mutating func takeChunkEnd() throws(HTTP1Error) -> Bool {
        guard buffer.count > start else { return false }
        guard buffer[start] == 0x0D else { throw .syntax(.malformedChunk) }
        guard buffer.count > start + 1 else { return false }
        guard buffer[start + 1] == 0x0A else { throw .syntax(.malformedChunk) }
        start += 2
        dropUsedBytes()
        return true
    }

    private mutating func dropUsedBytes() {
        guard start == buffer.count else { return }
        // A connection that is idle keeps no more memory than a usual request needs.
        buffer.removeAll(keepingCapacity: buffer.capacity <= 4 * 1024)
        start = 0
    }
}

extension WipedBytes {
    /// Calls `body` with the bytes from `start` on.
    func withBytes<Result, Failure: Error>(
        from start: Int, _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBytes { bytes throws(Failure) in
            try body(UnsafeRawBufferPointer(rebasing: bytes[start...]).assumingMemoryBound(to: UInt8.self))
        }
    }
}
