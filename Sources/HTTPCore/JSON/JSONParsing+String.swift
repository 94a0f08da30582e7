extension JSONParsing {
    /// Reads on in a string whose opening quote has been passed.
    ///
    /// - Returns: The string, with `position` behind its closing quote, or nil when it is time to pause.
    mutating func continueString(isName: Bool) throws(JSONError) -> JSONString? {
        while let byte = next {
            guard position < pause else { return nil }
            if isName { try refuseLongName() }
            switch byte {
            case ASCII.doubleQuote:
                position += 1
                return JSONString(storage: document, range: stringStart..<stringEnd)
            case ASCII.backslash: try escape()
            case 0x80...:
                let length = UTF8Validation.lengthOfSequence(in: UnsafeBufferPointer(bytes), at: position)
                guard length > 0 else { throw JSONError(.notUTF8, at: position) }
                keep(length)
            case 0x20...:
                let end = min(bytes.count, pause, isName ? position + JSONParser.nameLengthLimit + 1 : .max)
                let part = UnsafeBufferPointer(rebasing: UnsafeBufferPointer(bytes)[..<end])
                keep(TextScanner.endOfPlainText(in: part, from: position) - position)
            default: throw malformed()
            }
        }
        // The same error, whether the end came in the piece in which the name grew too long or in a later one.
        if isName { try refuseLongName() }
        throw malformed()
    }

    private func refuseLongName() throws(JSONError) {
        guard stringEnd - stringStart > JSONParser.nameLengthLimit else { return }
        throw JSONError(.nameTooLong, at: stringStart - 1, limit: JSONParser.nameLengthLimit)
    }

    /// Takes bytes as they are: moves them down behind what was unescaped before them.
    private mutating func keep(_ count: Int) {
        if stringEnd != position, let base = bytes.baseAddress {
            (base + stringEnd).update(from: base + position, count: count)
        }
        position += count
        stringEnd += count
    }

    /// Reads one escape, with `position` at its backslash. What it stands for takes fewer bytes.
    private mutating func escape() throws(JSONError) {
        let start = position
        position += 1
        guard let byte = next else { throw malformed() }
        position += 1
        switch byte {
        case ASCII.doubleQuote, ASCII.backslash, ASCII.slash: put(byte)
        case UInt8(ascii: "b"): put(0x08)
        case UInt8(ascii: "f"): put(0x0C)
        case UInt8(ascii: "n"): put(0x0A)
        case UInt8(ascii: "r"): put(0x0D)
        case UInt8(ascii: "t"): put(0x09)
        case UInt8(ascii: "u"):
            let scalar = try unicodeEscape(from: start)
            guard let base = bytes.baseAddress else { return }
            stringEnd += UTF8Validation.write(scalar, to: base + stringEnd)
        default:
            position -= 1
            throw malformed()
        }
    }

    private mutating func put(_ byte: UInt8) {
        bytes[stringEnd] = byte
        stringEnd += 1
    }

    private mutating func unicodeEscape(from start: Int) throws(JSONError) -> UInt32 {
        let scalar = try fourHexDigits()
        if (0xDC00..<0xE000).contains(scalar) { throw JSONError(.loneSurrogate, at: start) }
        guard (0xD800..<0xDC00).contains(scalar) else { return scalar }
        guard next == ASCII.backslash, position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "u") else {
            throw JSONError(.loneSurrogate, at: start)
        }
        position += 2
        let low = try fourHexDigits()
        guard (0xDC00..<0xE000).contains(low) else { throw JSONError(.loneSurrogate, at: start) }
        return 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
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
