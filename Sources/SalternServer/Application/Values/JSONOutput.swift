internal import Cryptography
internal import HTTPCore
internal import Postgres

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

extension JSONWriter {
    /// Writes an identifier in its canonical form.
    mutating func uuid(_ uuid: UUID) { string(plainCapacity: UUID.characterCount) { uuid.write(to: $0) } }

    /// Writes an identifier in its canonical form.
    mutating func member<Entity>(_ name: String, _ id: Identifier<Entity>) {
        self.name(name)
        uuid(id.uuid)
    }

    /// Writes a request id.
    mutating func requestID(_ id: RequestID) { string(plainCapacity: RequestID.characterCount) { id.write(to: $0) } }

    /// Writes the trace of a request as members of the current object.
    mutating func members(_ trace: TraceParent) {
        name("traceId")
        string(plainCapacity: TraceParent.traceIDCharacterCount) { trace.writeTraceID(to: $0) }
        name("parentSpanId")
        string(plainCapacity: TraceParent.spanIDCharacterCount) { trace.writeSpanID(to: $0) }
    }
}

extension JSONWriter {
    /// Writes a moment in RFC 3339.
    mutating func member(_ name: String, _ moment: Timestamp) {
        member(name, UTCTimestamp(microsecondsSinceEpoch: moment.unixMicroseconds))
    }
}

extension JSONWriter {
    /// Writes bytes as canonical base64.
    mutating func member(_ name: String, base64 bytes: [UInt8]) {
        self.name(name)
        string(base64: bytes)
    }

    /// Writes bytes as a string of canonical base64.
    mutating func string(base64 bytes: [UInt8]) {
        let count = Base64.encodedCount(bytes.count)
        string(plainCapacity: count) { target in
            Base64.encode(bytes, into: UnsafeMutableRawBufferPointer(target))
            return count
        }
    }
}

extension JSONWriter {
    /// Writes a secret as a prefix and base64url. The document holds the only copy of the text.
    mutating func member(_ name: String, _ prefix: String, base64URL secret: SecureBytes) {
        self.name(name)
        string(plainCapacity: prefix.utf8.count + Base64.encodedCount(secret.count)) { target in
            let start = Self.put(prefix, into: target)
            let rest = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: target[start...]))
            return start + Base64URL.encode(secret, into: rest)
        }
    }

    /// Writes a secret in base32 without padding between two texts that need no escapes. The document holds the only
    /// copy of the text.
    mutating func member(_ name: String, _ prefix: String = "", base32 secret: SecureBytes, _ suffix: String = "") {
        self.name(name)
        let count = Base32.encodedCount(secret.count, isPadded: false)
        string(plainCapacity: prefix.utf8.count + count + suffix.utf8.count) { target in
            let start = Self.put(prefix, into: target)
            let end = start + Base32.encode(secret, isPadded: false, into: .init(rebasing: target[start...]))
            return end + Self.put(suffix, into: .init(rebasing: target[end...]))
        }
    }

    private static func put(_ text: String, into target: UnsafeMutableBufferPointer<UInt8>) -> Int {
        for (index, byte) in text.utf8.enumerated() { target[index] = byte }
        return text.utf8.count
    }
}
