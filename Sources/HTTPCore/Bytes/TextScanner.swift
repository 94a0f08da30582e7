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
