/// Writes strings as JSON: quote, backslash and control characters are escaped, everything else is left as it is.
enum JSONEscaping {
    static func append(_ text: UnsafeBufferPointer<UInt8>, to output: inout ZeroizingBuffer) {
        output.append(ASCII.doubleQuote)
        var start = 0
        var position = 0
        while true {
            position = TextScanner.endOfPlainText(in: text, from: position)
            guard position < text.count else { break }
            let byte = text[position]
            if byte < 0x80 {
                output.append(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: text[start..<position])))
                escape(byte, to: &output)
                start = position + 1
            }
            position += 1
        }
        output.append(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: text[start...])))
        output.append(ASCII.doubleQuote)
    }

    private static func escape(_ byte: UInt8, to output: inout ZeroizingBuffer) {
        output.append(ASCII.backslash)
        switch byte {
        case ASCII.doubleQuote, ASCII.backslash: output.append(byte)
        case 0x08: output.append(UInt8(ascii: "b"))
        case 0x09: output.append(UInt8(ascii: "t"))
        case 0x0A: output.append(UInt8(ascii: "n"))
        case 0x0C: output.append(UInt8(ascii: "f"))
        case 0x0D: output.append(UInt8(ascii: "r"))
        default:
            let low = byte & 0x0F
            output.append(UInt8(ascii: "u"))
            output.append(ASCII.zero)
            output.append(ASCII.zero)
            output.append(ASCII.zero + byte >> 4)
            output.append(low < 10 ? ASCII.zero + low : 0x57 + low)
        }
    }
}
