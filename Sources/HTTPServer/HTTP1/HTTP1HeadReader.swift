import HTTPCore

/// Reads the lines of one head and stores their effect on framing and connection.
struct HTTP1HeadReader: Sendable {
    private let limits: HTTP1Limits
    /// The number of bytes in the lines read so far.
    private(set) var length = 0
    /// True when an empty line preceded the request line.
    var hasSkippedLine = false
    private var requestLine: HTTP1RequestLine?
    private var entries: [RequestFields.Entry] = []
    private var semantics = HTTP1FieldSemantics()

    init(limits: HTTP1Limits) {
        self.limits = limits
    }

    /// The maximum length of the next line, in bytes.
    var bytesLeft: Int {
        requestLine == nil ? min(limits.requestLine, limits.header) : limits.header - length
    }

    /// The error of a longer line.
    var tooLong: HTTP1Error {
        requestLine == nil ? .requestLineTooLong(limit: limits.requestLine) : .headerTooLarge(limit: limits.header)
    }

    /// Reads one line. `bytes` begins with the head.
    ///
    /// - Returns: True for the last line.
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

    /// Checks the whole head, which is in `storage`.
    func finish(_ storage: ZeroizingBuffer) throws(HTTP1Error) -> RequestHead {
        guard let requestLine else { throw .syntax(.malformedRequestLine) }
        let isVersion11 = requestLine.versionMinor == 1
        if isVersion11, semantics.host == nil { throw .syntax(.missingHost) }
        let framing = try semantics.framing(isVersion11: isVersion11)
        if isVersion11, semantics.expectation == .unknown { throw .expectationFailed }
        return RequestHead(
            method: requestLine.method, fields: RequestFields(storage: storage, entries: entries),
            path: requestLine.target.path, query: requestLine.target.query,
            // The host of an absolute target has priority over Host (RFC 9112 §3.2.2).
            host: requestLine.target.authority ?? semantics.host, versionMinor: requestLine.versionMinor,
            wantsKeepAlive: !semantics.closes && (isVersion11 || semantics.keepsAlive), framing: framing,
            expectsContinue: isVersion11 && semantics.expectation == .continue && framing != .none)
    }
}

/// The first line of a request: method, target and version (RFC 9112 §3).
struct HTTP1RequestLine: Sendable {
    let method: HTTPMethod
    let target: HTTP1Target
    let versionMinor: Int

    init(_ bytes: UnsafeBufferPointer<UInt8>, line: Range<Int>, limits: HTTP1Limits) throws(HTTP1Error) {
        let text = bytes[line]
        guard let firstSpace = text.firstIndex(of: ASCII.space), let lastSpace = text.lastIndex(of: ASCII.space),
            firstSpace < lastSpace
        else {
            throw .syntax(text.contains(ASCII.carriageReturn) ? .bareCarriageReturn : .malformedRequestLine)
        }
        versionMinor = try Self.versionMinor(UnsafeBufferPointer(rebasing: bytes[(lastSpace + 1)..<line.upperBound]))
        guard firstSpace - line.lowerBound <= limits.method,
            let method = HTTPMethod(token: UnsafeBufferPointer(rebasing: bytes[line.lowerBound..<firstSpace]))
        else { throw .syntax(.malformedMethod) }
        self.method = method
        target = try HTTP1Target(bytes, range: (firstSpace + 1)..<lastSpace, method: method)
    }

    private static func versionMinor(_ version: UnsafeBufferPointer<UInt8>) throws(HTTP1Error) -> Int {
        let prefix: StaticString = "HTTP/"
        guard version.count == 8, version[6] == ASCII.dot, ASCII.isDigit(version[5]), ASCII.isDigit(version[7]),
            version.prefix(5).elementsEqual(UnsafeBufferPointer(start: prefix.utf8Start, count: 5))
        else { throw .syntax(.malformedRequestLine) }
        guard version[5] == ASCII.zero + 1, version[7] <= ASCII.zero + 1 else { throw .versionNotSupported }
        return Int(version[7] - ASCII.zero)
    }
}

/// A request target (RFC 9112 §3.2): origin form, absolute form with `http` or `https`, or `*` for `OPTIONS`.
///
/// All visible ASCII characters except `#` are permitted. The router rejects invalid escapes.
struct HTTP1Target: Sendable {
    let path: Range<Int>
    let query: Range<Int>?
    /// Host and port of an absolute target.
    let authority: Range<Int>?

    init(_ bytes: UnsafeBufferPointer<UInt8>, range: Range<Int>, method: HTTPMethod) throws(HTTP1Error) {
        guard !range.isEmpty else { throw .syntax(.malformedTarget) }
        for index in range where bytes[index] &- 0x21 > 0x5D || bytes[index] == 0x23 { throw .syntax(.malformedTarget) }
        guard method != .connect else { throw .syntax(.unsupportedTargetForm) }
        let mark = bytes[range].firstIndex(of: ASCII.questionMark)
        query = mark.map { ($0 + 1)..<range.upperBound }
        let end = mark ?? range.upperBound
        if bytes[range.lowerBound] == ASCII.slash {
            path = range.lowerBound..<end
            authority = nil
            return
        }
        if range.count == 1, bytes[range.lowerBound] == 0x2A, method == .options {
            path = range
            authority = nil
            return
        }
        guard let schemeEnd = Self.endOfScheme(UnsafeBufferPointer(rebasing: bytes[range.lowerBound..<end])) else {
            throw .syntax(.unsupportedTargetForm)
        }
        let hostStart = range.lowerBound + schemeEnd
        let hostEnd = bytes[hostStart..<end].firstIndex(of: ASCII.slash) ?? end
        guard HTTP1Host.isValid(UnsafeBufferPointer(rebasing: bytes[hostStart..<hostEnd])) else {
            throw .syntax(.malformedTarget)
        }
        authority = hostStart..<hostEnd
        // An empty path equals "/" (RFC 9110 §4.2.3), and the byte before the host is a slash.
        path = hostEnd == end ? (hostStart - 1)..<hostStart : hostEnd..<end
    }

    /// Returns the length of a leading `http://` or `https://`, or nil.
    private static func endOfScheme(_ target: UnsafeBufferPointer<UInt8>) -> Int? {
        func begins(with scheme: StaticString) -> Bool {
            let count = scheme.utf8CodeUnitCount
            return target.count >= count
                && ASCII.equalsIgnoringCase(UnsafeBufferPointer(rebasing: target[..<count]), scheme)
        }
        if begins(with: "https://") { return 8 }
        return begins(with: "http://") ? 7 : nil
    }
}
