public import HTTPCore

/// Writes responses as HTTP/1.1 (RFC 9112).
///
/// All fields of the connection are written here. `Content-Length` is always the length of the body. A stream is
/// chunked, but for HTTP/1.0 clients it ends with the connection, so ``closes`` must be true.
///
/// The response's own `Content-Length`, `Transfer-Encoding`, `Connection`, `Keep-Alive`, `Upgrade`, `Trailer` and
/// `Date` are left out. No field can break out of its line, because `HTTPFields` has no control characters.
public struct HTTP1ResponseSerializer: Sendable {
    /// True after a HEAD request: the head is that of a GET, and no body follows.
    public var answersHead: Bool
    /// True when the connection closes after this response.
    public var closes: Bool
    /// The minor version of the request. The reply to HTTP/1.0 announces that the connection stays open.
    public var versionMinor: Int
    /// The announced number of seconds for which the connection stays open without a request, if any.
    public var keepAliveSeconds: Int?

    public init(
        answersHead: Bool = false, closes: Bool = false, versionMinor: Int = 1, keepAliveSeconds: Int? = nil
    ) {
        self.answersHead = answersHead
        self.closes = closes
        self.versionMinor = versionMinor
        self.keepAliveSeconds = keepAliveSeconds
    }

    /// The interim response that permits a client to send its body.
    public static let continueResponse = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    /// Appends the whole response.
    public func append(_ response: Response, date: HTTPDate, to output: inout some ByteOutput) {
        appendHead(of: response, date: date, to: &output)
        body(of: response)?.withUnsafeBytes { output.append($0) }
    }

    /// Returns the bytes after the head, for connections that send them without a copy.
    public func body(of response: Response) -> ZeroizingBuffer? {
        guard !answersHead, !response.status.forbidsBody, case .bytes(let bytes) = response.body else { return nil }
        return bytes
    }

    /// Returns the stream after the head. HTTP/1.1 clients receive it in chunks.
    public func stream(of response: Response) -> ResponseStream? {
        guard !answersHead, !response.status.forbidsBody, case .stream(let stream) = response.body else { return nil }
        return stream
    }

    /// Appends bytes of a stream, at least one, as a chunk (RFC 9112 §7.1).
    public static func appendChunk(_ bytes: [UInt8], to output: inout some ByteOutput) {
        appendChunkHead(byteCount: bytes.count, to: &output)
        bytes.withUnsafeBytes { output.append($0) }
        chunkEnd.withUnsafeBytes { output.append($0) }
    }

    /// Appends the line before the bytes of a chunk.
    public static func appendChunkHead(byteCount: Int, to output: inout some ByteOutput) {
        precondition(byteCount > 0, "a chunk without bytes is the last one")
        let digits = (Int.bitWidth - byteCount.leadingZeroBitCount + 3) / 4
        for index in (0..<digits).reversed() {
            let digit = UInt8(truncatingIfNeeded: byteCount >> (index * 4)) & 0xF
            output.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
        output.append("\r\n")
    }

    /// The bytes after those of a chunk.
    public static let chunkEnd = Array("\r\n".utf8)

    /// The bytes after the last chunk.
    public static let lastChunk = Array("0\r\n\r\n".utf8)

    /// Appends status line, fields and the empty line after them.
    public func appendHead(of response: Response, date: HTTPDate, to output: inout some ByteOutput) {
        output.append("HTTP/1.1 ")
        DecimalDigits.append(Int(response.status.code), digits: 3, to: &output)
        output.append(ASCII.space)
        output.append(utf8: response.status.reason)
        output.append("\r\nDate: ")
        date.bytes.withUnsafeBytes { output.append($0) }
        output.append("\r\n")
        for field in response.fields where !Self.belongsToConnection(field.name) {
            output.append(utf8: field.name)
            output.append(": ")
            output.append(utf8: field.value)
            output.append("\r\n")
        }
        if closes {
            output.append("Connection: close\r\n")
        } else if versionMinor == 0 || keepAliveSeconds != nil {
            output.append("Connection: keep-alive\r\n")
        }
        if !closes, let keepAliveSeconds {
            output.append("Keep-Alive: timeout=")
            DecimalDigits.append(Int64(keepAliveSeconds), to: &output)
            output.append("\r\n")
        }
        if !response.status.forbidsBody {
            if answersHead, case .none = response.body {
                // The length of the reply to a GET is unknown here, and 0 would be wrong (RFC 9110 §8.6).
            } else if let count = response.body.count {
                output.append("Content-Length: ")
                DecimalDigits.append(Int64(count), to: &output)
                output.append("\r\n")
            } else if versionMinor > 0 {
                output.append("Transfer-Encoding: chunked\r\n")
            }
        }
        output.append("\r\n")
    }

    private static func belongsToConnection(_ name: String) -> Bool {
        switch name.utf8.count {
        case 4: HTTPFields.isSame(name, "date")
        case 7: HTTPFields.isSame(name, "upgrade") || HTTPFields.isSame(name, "trailer")
        case 10: HTTPFields.isSame(name, "connection") || HTTPFields.isSame(name, "keep-alive")
        case 14: HTTPFields.isSame(name, "content-length")
        case 17: HTTPFields.isSame(name, "transfer-encoding")
        default: false
        }
    }
}
