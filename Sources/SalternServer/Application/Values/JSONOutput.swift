internal import Cryptography
internal import HTTPCore

/// A document that is sent while it is written. The writer waits for the client after each piece.
struct JSONOutput {
    var writer: JSONWriter
    private let body: any ResponseBodyWriter

    /// The size in bytes from which written text is sent.
    private static let pieceSize = 64 * 1_024

    /// - Parameter writer: The text written so far.
    init(_ body: any ResponseBodyWriter, after writer: JSONWriter = JSONWriter(capacity: JSONOutput.pieceSize)) {
        self.body = body
        self.writer = writer
    }

    /// Sends the written text if it has reached the size of a piece.
    mutating func flushIfLarge() async throws {
        if writer.count >= Self.pieceSize { try await flush() }
    }

    /// Sends the written text.
    mutating func flush() async throws { try await body.write(writer.takePiece()) }

    /// Writes a member whose value is base64 of bytes that are fetched in parts.
    ///
    /// - Parameters:
    ///   - name: The member.
    ///   - first: The first part. Like all parts but the last, its length is a multiple of three and needs no padding.
    ///   - byteCount: The total number of bytes.
    ///   - next: Fetches the part that begins at an offset.
    mutating func member(
        _ name: String, base64 first: [UInt8], of byteCount: Int, next: (Int) async throws -> [UInt8]
    ) async throws {
        writer.name(name)
        writer.beginPlainString()
        var part = first
        var written = 0
        while true {
            writer.continuePlainString(capacity: Base64.encodedCount(part.count)) { target in
                Base64.encode(part, into: UnsafeMutableRawBufferPointer(target))
                return Base64.encodedCount(part.count)
            }
            written += part.count
            if written >= byteCount { break }
            try await flush()
            part = try await next(written)
        }
        writer.endPlainString()
        try await flushIfLarge()
    }
}
