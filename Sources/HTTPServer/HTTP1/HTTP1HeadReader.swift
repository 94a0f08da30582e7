import HTTPCore

/// Reads the lines of one head as they come and keeps what they say about framing and connection.
struct HTTP1HeadReader: Sendable {
    private let limits: HTTP1Limits
    /// The bytes of the lines that were read.
    private(set) var length = 0
    /// Whether an empty line stood before the request line.
    var hasSkippedLine = false
    private var requestLine: HTTP1RequestLine?
    private var entries: [RequestFields.Entry] = []
    private var semantics = HTTP1FieldSemantics()

    init(limits: HTTP1Limits) {
        self.limits = limits
    }

    /// How many bytes the next line may have.
    var bytesLeft: Int {
        requestLine == nil ? min(limits.requestLine, limits.header) : limits.header - length
    }

    /// The error when it has more.
    var tooLong: HTTP1Error {
        requestLine == nil ? .requestLineTooLong(limit: limits.requestLine) : .headerTooLarge(limit: limits.header)
    }

    /// Reads one line; `bytes` begins with the head.
    ///
    /// - Returns: Whether it was the last.
    mutating func read(_ bytes: UnsafeBufferPointer<UInt8>, line: Range<Int>) throws(HTTP1Error) -> Bool {
        length = line.upperBound + 2
        guard requestLine != nil else {
            requestLine = try HTTP1RequestLine(bytes, line: line, limits: limits)
            entries.reserveCapacity(16)
            return false
        }
        if line.isEmpty { return true }
        guard entries.count < limits.fieldCount else { throw .tooManyFields(limit: limits.fieldCount) }
        let field = try HTTP1FieldLine(bytes, line: line)
        entries.append(RequestFields.Entry(name: field.name, value: field.value))
        try semantics.read(
            name: UnsafeBufferPointer(rebasing: bytes[field.name]),
            value: UnsafeBufferPointer(rebasing: bytes[field.value]),
            at: field.value)
        return false
    }

    /// Judges the head as a whole, whose bytes are `storage`.
    func finish(_ storage: ZeroizingBuffer) throws(HTTP1Error) -> RequestHead {
        guard let requestLine else { throw .syntax(.malformedRequestLine) }
        let isVersion11 = requestLine.versionMinor == 1
        if isVersion11, semantics.host == nil { throw .syntax(.missingHost) }
        let framing = try semantics.framing(isVersion11: isVersion11)
        if isVersion11, semantics.expectation == .unknown { throw .expectationFailed }
        return RequestHead(
            method: requestLine.method, fields: RequestFields(storage: storage, entries: entries),
            path: requestLine.target.path, query: requestLine.target.query,
            // The host of an absolute target counts, and Host does not (RFC 9112 §3.2.2).
            host: requestLine.target.authority ?? semantics.host, versionMinor: requestLine.versionMinor,
            wantsKeepAlive: !semantics.closes && (isVersion11 || semantics.keepsAlive), framing: framing,
            expectsContinue: isVersion11 && semantics.expectation == .continue && framing != .none)
    }
}
