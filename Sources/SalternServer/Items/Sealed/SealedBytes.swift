internal import Cryptography
internal import HTTPCore

/// Bytes that have the structure of a sealed format and are not evidently plaintext.
struct SealedBytes: Sendable, Equatable {
    let bytes: [UInt8]

    /// Checks bytes.
    init(_ bytes: [UInt8], format: SealedFormat) throws(SealedRefusal) {
        guard let layout = format.layout(of: bytes) else { throw .malformed(format) }
        guard !PlaintextEvidence.isFound(in: bytes, layout: layout) else { throw .notEncrypted }
        self.bytes = bytes
    }

    /// Decodes and checks base64, which may be wrapped as older Apple encoders write it.
    init(base64 text: JSONString, format: SealedFormat) throws(SealedRefusal) {
        let decoded = text.withUTF8 { try? Base64.decodeLineWrapped(UnsafeRawBufferPointer($0)) }
        guard let decoded else { throw .notBase64 }
        try self.init(decoded, format: format)
    }

    /// The same for text that can be long: others have their turn while it is decoded.
    init(base64 text: JSONString, format: SealedFormat, pace: Pace) async throws(SealedRefusal) {
        guard text.count > Pace.slice else {
            try self.init(base64: text, format: format)
            return
        }
        let decoded: [UInt8]
        do throws(Base64.Failure) {
            var decoding = try text.withUTF8 { text throws(Base64.Failure) in
                try Base64Decoding(UnsafeRawBufferPointer(text))
            }
            while try text.withUTF8({ text throws(Base64.Failure) in
                try decoding.advance(UnsafeRawBufferPointer(text), characters: Pace.slice)
            }) { await pace.giveWay() }
            decoded = decoding.finish()
        } catch {
            throw .notBase64
        }
        try self.init(decoded, format: format)
    }
}
