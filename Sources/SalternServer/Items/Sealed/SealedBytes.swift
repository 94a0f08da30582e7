internal import HTTPCore

/// Bytes that have the structure of a sealed format and are not evidently plaintext.
struct SealedBytes: Sendable, Equatable {
    let bytes: [UInt8]

    /// Checks the bytes.
    init(_ bytes: [UInt8], format: SealedFormat) throws(SealedRefusal) {
        guard let layout = format.layout(of: bytes) else { throw .malformed(format) }
        guard !PlaintextEvidence.isFound(in: bytes, layout: layout) else { throw .notEncrypted }
        self.bytes = bytes
    }

    /// Decodes and checks base64.
    init(base64 text: JSONString, format: SealedFormat) throws(SealedRefusal) {
        guard let decoded = Base64Text.decode(text) else { throw .notBase64 }
        try self.init(decoded, format: format)
    }

    /// Decodes and checks base64 that can be long, and yields to other work meanwhile.
    init(base64 text: JSONString, format: SealedFormat, pace: Pace) async throws(SealedRefusal) {
        guard let decoded = await Base64Text.decode(text, pace: pace) else { throw .notBase64 }
        try self.init(decoded, format: format)
    }
}
