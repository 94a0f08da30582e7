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
