internal import Cryptography
internal import HTTPCore

/// Reads the base64 of all requests (RFC 4648 §4).
///
/// White space around the text is dropped. The rest is canonical base64 with padding, in one piece or wrapped like MIME
/// and PEM (`Base64.decodeLineWrapped(_:)`).
enum Base64Text {
    /// Returns the bytes. Nil if the text is not base64.
    static func decode(_ text: JSONString) -> [UInt8]? {
        text.withUTF8 { try? Base64.decodeLineWrapped(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the bytes of a text that can be long, and yields to other work meanwhile. Nil if the text is not base64.
    static func decode(_ text: JSONString, pace: Pace) async -> [UInt8]? {
        guard text.count > Pace.slice else { return decode(text) }
        do throws(Base64.Failure) {
            var decoding = try text.withUTF8 { text throws(Base64.Failure) in
                try Base64Decoding(UnsafeRawBufferPointer(trimmed(text)))
            }
            while try text.withUTF8({ text throws(Base64.Failure) in
                try decoding.advance(UnsafeRawBufferPointer(trimmed(text)), characters: Pace.slice)
            }) { await pace.giveWay() }
            return decoding.finish()
        } catch {
            return nil
        }
    }

    /// Returns secret bytes without any other copy. Nil if the text is not base64. A secret is shorter than a line.
    static func decodeSecure(_ text: JSONString) -> SecureBytes? {
        text.withUTF8 { try? Base64.decodeSecure(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the bytes of base64url without padding (RFC 4648 §5), the form of WebAuthn. Nil for other text.
    static func decodeURL(_ text: JSONString) -> [UInt8]? {
        text.withUTF8 { try? Base64URL.decode(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the bytes of base64url without padding, which URLs can contain. Nil for other text.
    static func decodeURL(_ text: String) -> [UInt8]? {
        var text = text
        return text.withUTF8 { try? Base64URL.decode(UnsafeRawBufferPointer(trimmed($0))) }
    }

    /// Returns the text without surrounding spaces, tabs and line ends.
    private static func trimmed(_ text: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        guard let first = text.firstIndex(where: { !isWhiteSpace($0) }),
            let last = text.lastIndex(where: { !isWhiteSpace($0) })
        else { return UnsafeBufferPointer(rebasing: text[..<0]) }
        return UnsafeBufferPointer(rebasing: text[first...last])
    }

    private static func isWhiteSpace(_ byte: UInt8) -> Bool {
        byte == ASCII.space || byte == ASCII.tab || byte == ASCII.lineFeed || byte == ASCII.carriageReturn
    }
}
