/// Searches in bytes, eight at a time.
enum ByteSearch {
    /// Returns the position of the first line feed at or after `start`, or nil.
    static func lineFeed(in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        let raw = UnsafeRawBufferPointer(bytes)
        var position = start
        while position + 8 <= raw.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            let difference = word ^ (ones &* 0x0A)
            // The lowest mark is exact: a borrow can only touch bytes above a byte that is zero.
            let marks = (difference &- ones) & ~difference & tops
            if marks != 0 { return position + marks.trailingZeroBitCount / 8 }
            position += 8
        }
        while position < raw.count {
            if raw[position] == 0x0A { return position }
            position += 1
        }
        return nil
    }

    /// Returns whether all bytes are permitted in a field value (RFC 9110 §5.5): no control character except the tab.
    static func isFieldValue(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        let raw = UnsafeRawBufferPointer(bytes)
        var position = 0
        while position + 8 <= raw.count {
            let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            let delete = word ^ (ones &* 0x7F)
            let suspicious = (word &- ones &* 0x20) & ~word | (delete &- ones) & ~delete
            // Marks are exact only for the lowest byte, and a tab is permitted. Marked words are checked byte by byte.
            if suspicious & tops != 0 {
                for offset in 0..<8 where !isFieldValueByte(raw[position + offset]) { return false }
            }
            position += 8
        }
        while position < raw.count {
            guard isFieldValueByte(raw[position]) else { return false }
            position += 1
        }
        return true
    }

    @inline(__always)
    private static func isFieldValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }
}
