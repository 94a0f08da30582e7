/// Finds the end of plain text, eight bytes at a time.
enum TextScanner {
    /// Returns the first position from `start` of a byte that is not plain JSON text, or the end.
    ///
    /// Such bytes are control characters, quotes, backslashes, and bytes above 0x7F.
    static func endOfPlainText(in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        var position = start
        let raw = UnsafeRawBufferPointer(bytes)
        while position + 8 <= raw.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            // Each term has the top bit of every byte that is below 0x20, or equal to a quote, or to a backslash. A
            // borrow can mark a byte above a marked one, never one below, so the lowest mark is exact.
            let control = word &- ones &* 0x20
            let quote = (word ^ ones &* 0x22) &- ones
            let backslash = (word ^ ones &* 0x5C) &- ones
            let marks = ((control | quote | backslash) & ~word | word) & tops
            if marks != 0 { return position + marks.trailingZeroBitCount / 8 }
            position += 8
        }
        while position < raw.count, isPlain(raw[position]) { position += 1 }
        return position
    }

    @inline(__always)
    static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte < 0x80 && byte != ASCII.doubleQuote && byte != ASCII.backslash
    }
}

/// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
enum UTF8Validation {
    /// Returns the length in bytes of the well-formed sequence at `position`, or 0 without one.
    static func lengthOfSequence(in bytes: UnsafeBufferPointer<UInt8>, at position: Int) -> Int {
        let lead = bytes[position]
        let length: Int
        let second: ClosedRange<UInt8>
        switch lead {
        case 0x00...0x7F: return 1
        case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: return 0
        }
        guard position + length <= bytes.count, second.contains(bytes[position + 1]) else { return 0 }
        for index in (position + 2)..<max(position + 2, position + length) where bytes[index] & 0xC0 != 0x80 {
            return 0
        }
        return length
    }

    /// Writes a Unicode scalar value, which is no surrogate and at most U+10FFFF.
    /// - Returns: The number of bytes, at most four.
    static func write(_ scalar: UInt32, to output: UnsafeMutablePointer<UInt8>) -> Int {
        func tail(_ shift: UInt32) -> UInt8 { UInt8(0x80 | (scalar >> shift) & 0x3F) }
        switch scalar {
        case 0..<0x80:
            output[0] = UInt8(scalar)
            return 1
        case 0x80..<0x800:
            output[0] = UInt8(0xC0 | scalar >> 6)
            output[1] = tail(0)
            return 2
        case 0x800..<0x10000:
            output[0] = UInt8(0xE0 | scalar >> 12)
            output[1] = tail(6)
            output[2] = tail(0)
            return 3
        default:
            output[0] = UInt8(0xF0 | scalar >> 18)
            output[1] = tail(12)
            output[2] = tail(6)
            output[3] = tail(0)
            return 4
        }
    }
}
