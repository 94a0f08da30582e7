import HTTPCore

/// Turns the bytes of a connection into requests (RFC 9112), strictly.
///
/// A value without sockets: bytes go in with `append`, in any pieces, and events come out of `next`. The pieces do
/// not change what comes out, except where a body is cut. After `.end` the next call reads the next pipelined request
/// from what is buffered, so ask only when the reply of the one before has been made.
///
/// Stricter than the RFC demands: `Content-Length` lists are refused, and so are obsolete line folding, a `Host` that
/// differs from an absolute target and more than one empty line before a request line.
public struct HTTP1RequestParser: Sendable {
    public let limits: HTTP1Limits
    /// The longest body in bytes of the request being read. Set it after `.head`; every head sets it back to no limit.
    public var bodyLimit = Int.max

    var buffer = ZeroizingBuffer()
    /// The first byte in `buffer` that has not been used.
    var start = 0
    /// How many bytes after `start` belong to lines that were read or hold no line feed.
    var scanned = 0
    var state = State.head
    var head: HTTP1HeadReader
    var chunks: HTTP1ChunkReader
    /// The bytes of the body so far.
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

    /// How many bytes the buffer could hold without growing.
    package var bufferCapacity: Int { buffer.capacity }

    /// The number of bytes that were appended and not used yet.
    public var bufferedByteCount: Int { buffer.count - start }

    /// Whether the last request is complete and no byte of another has come.
    public var isBetweenRequests: Bool { isReadingHead && bufferedByteCount == 0 }

    /// Whether a head is being read or awaited.
    public var isReadingHead: Bool {
        if case .head = state { true } else { false }
    }

    /// Whether what is being read as a head begins as a request of the method HEAD does: the reply to it has no body,
    /// also when it is refused.
    var readsHEAD: Bool { isReadingHead && buffer[start...].starts(with: "HEAD ".utf8) }

    /// Adds bytes that arrived.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        // Moving the rest costs no more than what was used since the last time.
        if start > 0, start >= buffer.count - start {
            buffer.removeFirst(start)
            start = 0
        }
        buffer.append(bytes)
    }

    /// Adds bytes that arrived.
    public mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    /// Takes bytes of the body that is being read from where they are, when nothing is buffered before them: `bytes` are
    /// those that arrived next. What is not taken has to be appended.
    ///
    /// - Returns: How many bytes at the front of `bytes` belong to the body and count as taken.
    /// - Throws: As ``next()``.
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

    /// The next event, or nil when more bytes are needed.
    ///
    /// - Throws: What is wrong with the bytes. An error is final: it is thrown again ever after.
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

    func checkBodyLimit(adding count: Int) throws(HTTP1Error) {
        let (total, overflow) = received.addingReportingOverflow(count)
        if overflow || total > bodyLimit { throw .bodyTooLarge(limit: bodyLimit) }
    }
}
