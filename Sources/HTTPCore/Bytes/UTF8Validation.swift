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
