import HTTPCore

/// The grammar of chunk extensions (RFC 9112 §7.1.1):
/// `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`.
enum HTTP1ChunkExtensions {
    static func isValid(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var position = 0
        while position < text.count {
            skipSpace(text, &position)
            guard skip(ASCII.semicolon, text, &position) else { return false }
            skipSpace(text, &position)
            guard skipToken(text, &position) else { return false }
            var ahead = position
            skipSpace(text, &ahead)
            guard skip(ASCII.equals, text, &ahead) else { continue }
            skipSpace(text, &ahead)
            guard skipToken(text, &ahead) || skipQuotedString(text, &ahead) else { return false }
            position = ahead
        }
        return true
    }

    private static func skipSpace(_ text: UnsafeBufferPointer<UInt8>, _ position: inout Int) {
        while position < text.count, text[position] == ASCII.space || text[position] == ASCII.tab { position += 1 }
    }

    private static func skip(_ byte: UInt8, _ text: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        guard position < text.count, text[position] == byte else { return false }
        position += 1
        return true
    }

    private static func skipToken(_ text: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        let start = position
        while position < text.count, ASCII.isTokenCharacter(text[position]) { position += 1 }
        return position > start
    }

    private static func skipQuotedString(_ text: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        guard skip(ASCII.doubleQuote, text, &position) else { return false }
        while position < text.count {
            var byte = text[position]
            position += 1
            if byte == ASCII.doubleQuote { return true }
            if byte == ASCII.backslash {
                guard position < text.count else { return false }
                byte = text[position]
                position += 1
            }
            guard byte >= 0x20 && byte != 0x7F || byte == ASCII.tab else { return false }
        }
        return false
    }
}
