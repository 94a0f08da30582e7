public import HTTPCore

/// Converts the bytes of a connection into requests (RFC 9112), strictly.
///
/// A value without sockets: `append` takes bytes in any pieces, and `next` returns events. The pieces do not affect the
/// events, except the division of a body. After `.end`, the next call reads the next pipelined request from the buffer.
/// Call it only after the earlier reply is complete.
///
/// Stricter than the RFC: it rejects `Content-Length` lists, obsolete line folding, and more than one empty line before
/// a request line. The host of an absolute target replaces `Host` (RFC 9112 §3.2.2).
public struct HTTP1RequestParser: Sendable {
    public let limits: HTTP1Limits
    /// The maximum length in bytes of the current request's body. Set it after `.head`. Each head resets it to no
    /// limit.
    public var bodyLimit = Int.max

    var buffer = ZeroizingBuffer()
    /// The position of the first unused byte in `buffer`.
    var start = 0
    /// The number of bytes after `start` that belong to complete lines or have no line feed.
    private var scanned = 0
    var state = State.head
    var head: HTTP1HeadReader
    var chunks: HTTP1ChunkReader
    /// The number of received bytes of the body.
    var received = 0
    var failure: HTTP1Error?

    enum State: Sendable {
        case head
        case body(remaining: Int)
        case chunkLine
        case chunkData(remaining: Int)
        case chunkEnd
        case trailer
        case end
    }

    public init(limits: HTTP1Limits = HTTP1Limits()) {
        self.limits = limits
        head = HTTP1HeadReader(limits: limits)
        chunks = HTTP1ChunkReader(limits: limits)
    }

    /// The number of bytes that the buffer can hold without growing.
    package var bufferCapacity: Int { buffer.capacity }

    /// The number of appended and unused bytes.
    public var bufferedByteCount: Int { buffer.count - start }

    /// True when the last request is complete and no byte of another has arrived.
    public var isBetweenRequests: Bool { isReadingHead && bufferedByteCount == 0 }

    /// True while a head is read or awaited.
    public var isReadingHead: Bool {
        if case .head = state { true } else { false }
    }

    /// True when the current head begins like a HEAD request. A reply to it has no body, and neither has a refusal.
    var readsHEAD: Bool { isReadingHead && buffer[start...].starts(with: "HEAD ".utf8) }

    /// Appends received bytes.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        // Moving the rest costs no more than the bytes used since the last move.
        if start > 0, start >= buffer.count - start {
            buffer.removeFirst(start)
            start = 0
        }
        buffer.append(bytes)
    }

    /// Appends received bytes.
    public mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    /// Takes bytes of the current body in place, if the buffer is empty: `bytes` are the next received ones. The caller
    /// appends the rest.
    ///
    /// - Returns: The number of bytes at the front of `bytes` that belong to the body and are taken.
    /// - Throws: Errors of ``next()``.
    public mutating func takeBody(of bytes: UnsafeRawBufferPointer) throws(HTTP1Error) -> Int {
        guard failure == nil, bufferedByteCount == 0 else { return 0 }
        switch state {
        case .body(let remaining):
            do throws(HTTP1Error) { try checkBodyLimit(adding: remaining) } catch {
                failure = error
                throw error
            }
            let count = min(remaining, bytes.count)
            received += count
            state = count == remaining ? .end : .body(remaining: remaining - count)
            return count
        case .chunkData(let remaining):
            let count = min(remaining, bytes.count)
            received += count
            state = count == remaining ? .chunkEnd : .chunkData(remaining: remaining - count)
            return count
        case .head, .chunkLine, .chunkEnd, .trailer, .end: return 0
        }
    }

    /// Returns the next event, or nil when more bytes are needed.
    ///
    /// - Throws: The fault of the bytes. An error is final, and all later calls throw it.
    public mutating func next() throws(HTTP1Error) -> HTTP1Event? {
        if let failure { throw failure }
        do throws(HTTP1Error) {
            return try nextEvent()
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func nextEvent() throws(HTTP1Error) -> HTTP1Event? {
        while true {
            switch state {
            case .head:
                guard let head = try nextHead() else { return nil }
                return .head(head)
            case .body(let remaining):
                try checkBodyLimit(adding: remaining)
                guard let bytes = takeBytes(atMost: remaining) else { return nil }
                state = bytes.count == remaining ? .end : .body(remaining: remaining - bytes.count)
                return .body(bytes)
            case .chunkLine, .chunkData, .chunkEnd:
                let piece = try takeChunks()
                if !piece.isEmpty { return .body(piece) }
                guard case .trailer = state else { return nil }
            case .trailer:
                guard
                    let line = try takeLine(
                        maximum: chunks.trailerBytesLeft, else: .headerTooLarge(limit: limits.header))
                else { return nil }
                let isComplete = try buffer.withBytes(from: start) { bytes throws(HTTP1Error) in
                    try chunks.readTrailer(bytes, line: line)
                }
                dropLine()
                if isComplete { state = .end }
            case .end:
                state = .head
                return .end
            }
        }
    }

    private mutating func nextHead() throws(HTTP1Error) -> RequestHead? {
        guard try skipEmptyLine() else { return nil }
        while let line = try takeLine(maximum: head.bytesLeft, else: head.tooLong) {
            let isComplete = try buffer.withBytes(from: start) { bytes throws(HTTP1Error) in
                try head.read(bytes, line: line)
            }
            guard isComplete else { continue }
            let result = try head.finish(ZeroizingBuffer(buffer[start..<(start + scanned)]))
            dropLine()
            head = HTTP1HeadReader(limits: limits)
            chunks = HTTP1ChunkReader(limits: limits)
            received = 0
            bodyLimit = .max
            state =
                switch result.framing {
                case .none: .end
                case .length(let length): .body(remaining: length)
                case .chunked: .chunkLine
                }
            return result
        }
        return nil
    }

    private func checkBodyLimit(adding count: Int) throws(HTTP1Error) {
        let (total, overflow) = received.addingReportingOverflow(count)
        if overflow || total > bodyLimit { throw .bodyTooLarge(limit: bodyLimit) }
    }
}

extension HTTP1RequestParser {
    /// Finds the next line.
    ///
    /// - Parameters:
    ///   - maximum: The maximum length of the line in bytes, with its CRLF.
    ///   - error: The error for a longer line, also before its end has arrived.
    /// - Returns: The position of the line after `start`, without its CRLF. Nil for an incomplete line.
    /// - Throws: `error`, or `bare_line_feed` when the line does not end with CRLF.
    private mutating func takeLine(maximum: Int, else error: HTTP1Error) throws(HTTP1Error) -> Range<Int>? {
        let buffer = buffer
        return try buffer.withBytes(from: start) { bytes throws(HTTP1Error) in
            try findLine(in: bytes, from: lineStart, maximum: maximum, else: error)
        }
    }

    /// Finds a line that begins at `lineStart` of `bytes`, which are those from `start` on.
    @inline(__always)
    private mutating func findLine(
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

    /// The offset after `start` of the searched line. The lines of a head stay until it is complete.
    private var lineStart: Int {
        if case .head = state { head.length } else { 0 }
    }

    /// Skips one empty line before a request line: old clients send one after a body (RFC 9112 §2.2).
    ///
    /// - Returns: True when a request line may begin. False when more bytes are needed to decide.
    private mutating func skipEmptyLine() throws(HTTP1Error) -> Bool {
        // Bytes of another protocol, such as TLS, fail at once.
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

    /// Drops the bytes that were read as lines.
    private mutating func dropLine() { use(scanned) }

    /// Returns at most `maximum` bytes from the front of the buffer, or nil without any. A buffer without other bytes
    /// is handed over instead of copied.
    private mutating func takeBytes(atMost maximum: Int) -> ZeroizingBuffer? {
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

    /// Removes bytes at the front, which have been read.
    mutating func use(_ count: Int) {
        start += count
        scanned = max(0, scanned - count)
        dropUsedBytes()
    }

    private mutating func dropUsedBytes() {
        guard start == buffer.count else { return }
        // An idle connection keeps no more memory than a usual request needs.
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

extension HTTP1RequestParser {
    /// Returns the data of the received chunks as one piece, because each piece has a cost, even for chunks of one
    /// byte.
    ///
    /// At most ``HTTP1Limits/chunksPerPiece`` chunks are read, so that the number of pieces measures the work.
    ///
    /// - Returns: No bytes when more have to arrive, and after the last chunk.
    /// - Throws: The error of the first chunk. The next call throws the error of a later one.
    private mutating func takeChunks() throws(HTTP1Error) -> ZeroizingBuffer {
        if case .chunkData(let remaining) = state, remaining >= bufferedByteCount {
            guard let bytes = takeBytes(atMost: remaining) else { return ZeroizingBuffer() }
            state = bytes.count == remaining ? .chunkEnd : .chunkData(remaining: remaining - bytes.count)
            return bytes
        }
        var piece = ZeroizingBuffer()
        var position = 0
        do throws(HTTP1Error) {
            // Held here once instead of for each chunk.
            let buffer = buffer
            try buffer.withBytes(from: start) { bytes throws(HTTP1Error) in
                try readChunks(bytes, at: &position, into: &piece)
            }
        } catch {
            failure = error
            if piece.isEmpty { throw error }
        }
        use(position)
        return piece
    }

    /// Reads chunks from `bytes`, which are those from ``start`` on.
    private mutating func readChunks(
        _ bytes: UnsafeBufferPointer<UInt8>, at position: inout Int, into piece: inout ZeroizingBuffer
    ) throws(HTTP1Error) {
        for _ in 0..<limits.chunksPerPiece {
            if case .chunkLine = state {
                guard
                    let line = try findLine(
                        in: bytes, from: position, maximum: limits.chunkLine, else: .syntax(.malformedChunk))
                else { return }
                let size = try chunks.readSize(bytes, line: line)
                try checkBodyLimit(adding: size)
                position = scanned
                state = size == 0 ? .trailer : .chunkData(remaining: size)
            }
            if case .chunkData(let remaining) = state {
                let count = min(remaining, bytes.count - position)
                if piece.isEmpty { piece.reserveCapacity(min(max(count, 1_024), bytes.count)) }
                let data = UnsafeBufferPointer(rebasing: bytes[position..<(position + count)])
                piece.append(UnsafeRawBufferPointer(data))
                received += count
                position += count
                state = count == remaining ? .chunkEnd : .chunkData(remaining: remaining - count)
            }
            guard case .chunkEnd = state else { return }
            guard position < bytes.count else { return }
            guard bytes[position] == ASCII.carriageReturn else { throw .syntax(.malformedChunk) }
            guard position + 1 < bytes.count else { return }
            guard bytes[position + 1] == ASCII.lineFeed else { throw .syntax(.malformedChunk) }
            position += 2
            scanned = position
            state = .chunkLine
        }
    }
}

extension HTTP1RequestParser {
    /// The most bytes of a head that are searched.
    private static let searchLimit = 32 * 1_024

    /// The path and the origin in the received bytes of a rejected or incomplete head. They are unchecked.
    var unreadHead: UnreadHead? {
        guard isReadingHead else { return nil }
        var lines = buffer[start...].prefix(Self.searchLimit).split(separator: ASCII.lineFeed)[...]
        if let first = lines.first, first.allSatisfy({ $0 == ASCII.carriageReturn }) { lines = lines.dropFirst() }
        guard let words = lines.first?.split(separator: ASCII.space), words.count > 1, words[1].first == ASCII.slash
        else {
            return nil
        }
        let path = words[1].prefix { $0 != ASCII.questionMark }
        let origins = lines.dropFirst().compactMap(Self.origin)
        return UnreadHead(
            path: String(decoding: path, as: UTF8.self), origin: origins.count == 1 ? origins[0] : nil)
    }

    /// Returns the value of a line that is a field `Origin`.
    private static func origin(_ line: some Collection<UInt8>) -> String? {
        let name = Array("origin:".utf8)
        guard line.prefix(name.count).map({ ASCII.lowercased($0) }) == name else { return nil }
        let value = line.dropFirst(name.count).filter { $0 > ASCII.space }
        return String(decoding: value, as: UTF8.self)
    }
}

/// An element in the bytes of a connection, in the order of the bytes.
public enum HTTP1Event: Sendable {
    /// The head of a request.
    case head(RequestHead)
    /// The next bytes of its body, decoded, never empty. The division of a body into these is not significant.
    case body(ZeroizingBuffer)
    /// The end of the request. The next one may follow.
    case end
}

/// The limits of a request in the codec. All sizes are in bytes.
public struct HTTP1Limits: Sendable, Hashable {
    /// Request line with its CRLF.
    public var requestLine = 8 * 1024
    /// Request line, fields and the empty line after them. The trailer section of a chunked body has the same limit.
    public var header = 16 * 1024
    /// Field lines in the head, and field lines in the trailer section.
    public var fieldCount = 100
    /// One chunk-size line with its extensions and CRLF.
    public var chunkLine = 256
    /// The extensions of all chunks of one body.
    public var chunkExtensions = 4 * 1024
    /// The number of chunks that are read at once and become one piece of a body.
    public var chunksPerPiece = 256
    /// The method.
    public var method = 32

    public init() {}
}
