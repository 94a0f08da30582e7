extension JSONReader {
    /// Reads a string, with `position` at its opening quote.
    mutating func readString() throws(JSONError) -> JSONString {
        position += 1
        let start = position
        position = TextScanner.endOfPlainText(in: bytes, from: position)
        if next == ASCII.doubleQuote {
            position += 1
            return JSONString(storage: document, range: start..<(position - 1))
        }
        var unescaped: [UInt8] = []
        var isEscaped = false
        var runStart = start
        while let byte = next {
            if byte == ASCII.doubleQuote {
                position += 1
                guard isEscaped else { return JSONString(storage: document, range: start..<(position - 1)) }
                unescaped += bytes[runStart..<(position - 1)]
                return JSONString(storage: unescaped, range: 0..<unescaped.count)
            } else if byte == ASCII.backslash {
                isEscaped = true
                unescaped += bytes[runStart..<position]
                try escape(into: &unescaped)
                runStart = position
            } else if byte < 0x20 {
                throw malformed()
            } else {
                let length = UTF8Validation.lengthOfSequence(in: bytes, at: position)
                guard length > 0 else { throw JSONError(.notUTF8, at: position) }
                position += length
            }
            position = TextScanner.endOfPlainText(in: bytes, from: position)
        }
        throw malformed()
    }

    /// Reads one escape, with `position` at its backslash.
    private mutating func escape(into output: inout [UInt8]) throws(JSONError) {
        let start = position
        position += 1
        guard let byte = next else { throw malformed() }
        position += 1
        switch byte {
        case ASCII.doubleQuote, ASCII.backslash, ASCII.slash: output.append(byte)
        case UInt8(ascii: "b"): output.append(0x08)
        case UInt8(ascii: "f"): output.append(0x0C)
        case UInt8(ascii: "n"): output.append(0x0A)
        case UInt8(ascii: "r"): output.append(0x0D)
        case UInt8(ascii: "t"): output.append(0x09)
        case UInt8(ascii: "u"):
            var scalar = try fourHexDigits()
            if (0xDC00..<0xE000).contains(scalar) { throw JSONError(.loneSurrogate, at: start) }
            if (0xD800..<0xDC00).contains(scalar) {
                guard next == ASCII.backslash, position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "u")
                else {
                    throw JSONError(.loneSurrogate, at: start)
                }
                position += 2
                let low = try fourHexDigits()
                guard (0xDC00..<0xE000).contains(low) else { throw JSONError(.loneSurrogate, at: start) }
                scalar = 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
            }
            UTF8Validation.append(scalar, to: &output)
        default:
            position -= 1
            throw malformed()
        }
    }

    private mutating func fourHexDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = ASCII.hexValue(byte) else { throw malformed() }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }
}
