import HTTPCore

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
