import HTTPCore

/// The grammar of chunk extensions (RFC 9112 §7.1.1) without the "bad" white space that it tolerates:
/// `*( ";" token [ "=" ( token / quoted-string ) ] )`. Parsers that disagree about that space have been used to
/// smuggle requests, and no client needs it.
enum HTTP1ChunkExtensions {
    static func isValid(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var position = 0
        while position < text.count {
            guard skip(ASCII.semicolon, text, &position), skipToken(text, &position) else { return false }
            guard skip(ASCII.equals, text, &position) else { continue }
            guard skipToken(text, &position) || skipQuotedString(text, &position) else { return false }
        }
        return true
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
