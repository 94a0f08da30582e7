/// Bytes with a meaning in HTTP and JSON, and the character classes of RFC 9110 §5.6.
package enum ASCII {
    package static let tab: UInt8 = 0x09
    package static let lineFeed: UInt8 = 0x0A
    package static let carriageReturn: UInt8 = 0x0D
    package static let space: UInt8 = 0x20
    package static let doubleQuote: UInt8 = 0x22
    package static let percent: UInt8 = 0x25
    package static let plus: UInt8 = 0x2B
    package static let comma: UInt8 = 0x2C
    package static let minus: UInt8 = 0x2D
    package static let dot: UInt8 = 0x2E
    package static let slash: UInt8 = 0x2F
    package static let zero: UInt8 = 0x30
    package static let nine: UInt8 = 0x39
    package static let colon: UInt8 = 0x3A
    package static let semicolon: UInt8 = 0x3B
    package static let equals: UInt8 = 0x3D
    package static let questionMark: UInt8 = 0x3F
    package static let openBracket: UInt8 = 0x5B
    package static let backslash: UInt8 = 0x5C
    package static let closeBracket: UInt8 = 0x5D
    package static let openBrace: UInt8 = 0x7B
    package static let closeBrace: UInt8 = 0x7D

    /// Returns the byte with A-Z folded to a-z. Other bytes stay unchanged.
    @inline(__always)
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10
    }

    /// Reads a whole number in its only form: digits, without plus sign and leading zeros, which `Int` accepts.
    package static func wholeNumber<Number: FixedWidthInteger>(_ text: some StringProtocol) -> Number? {
        guard let number = Number(text), String(number) == text else { return nil }
        return number
    }

    @inline(__always)
    package static func isLetter(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26
    }

    /// Returns the value of a hexadecimal digit in either case, or nil.
    @inline(__always)
    package static func hexValue(_ byte: UInt8) -> UInt8? {
        let digit = byte &- 0x30
        if digit < 10 { return digit }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }

    /// Writes `value` as 16 hexadecimal digits in lower case to `digits` from `start` on. There must be room.
    package static func writeHexadecimal(
        _ value: UInt64, to digits: UnsafeMutableBufferPointer<UInt8>, at start: Int
    ) {
        for index in 0..<16 {
            let digit = UInt8(truncatingIfNeeded: value >> UInt64(60 - index * 4)) & 15
            digits[start + index] = digit < 10 ? zero + digit : digit + 0x57
        }
    }

    /// Returns whether the byte is a `tchar` (RFC 9110 §5.6.2), the alphabet of methods and field names.
    @inline(__always)
    package static func isTokenCharacter(_ byte: UInt8) -> Bool {
        // One bit for each character: ! # $ % & ' * + - . 0-9, then A-Z ^ _ ` a-z | ~.
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        if byte < 64 { return (low >> UInt64(byte)) & 1 == 1 }
        return byte < 128 && (high >> UInt64(byte & 63)) & 1 == 1
    }

    /// Returns whether `bytes` is a non-empty `token`.
    package static func isToken(_ bytes: some Sequence<UInt8>) -> Bool {
        var isEmpty = true
        for byte in bytes {
            guard isTokenCharacter(byte) else { return false }
            isEmpty = false
        }
        return !isEmpty
    }

    /// Returns whether two byte strings are equal without regard to the case of A-Z.
    package static func equalsIgnoringCase(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>)
        -> Bool
    {
        guard left.count == right.count else { return false }
        for index in left.indices where lowercased(left[index]) != lowercased(right[index]) { return false }
        return true
    }

    /// Returns whether `bytes` equals `literal`, which is in lower case, without regard to the case of A-Z.
    package static func equalsIgnoringCase(_ bytes: UnsafeBufferPointer<UInt8>, _ literal: StaticString) -> Bool {
        guard bytes.count == literal.utf8CodeUnitCount else { return false }
        let start = literal.utf8Start
        for index in bytes.indices where lowercased(bytes[index]) != start[index] { return false }
        return true
    }

    /// Returns `bytes` without leading and trailing spaces and tabs (`OWS`, RFC 9110 §5.6.3).
    package static func trimmed(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        var start = 0
        var end = bytes.count
        while start < end, bytes[start] == space || bytes[start] == tab { start += 1 }
        while end > start, bytes[end - 1] == space || bytes[end - 1] == tab { end -= 1 }
        return UnsafeBufferPointer(rebasing: bytes[start..<end])
    }
}

/// Decimal numbers as ASCII, without a `String`.
package enum DecimalDigits {
    /// Appends a number, with a minus sign if it is negative.
    package static func append(_ value: Int64, to output: inout some ByteOutput) {
        if value < 0 { output.append(ASCII.minus) }
        var rest = value.magnitude
        var divisor: UInt64 = 1
        while rest / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            output.append(ASCII.zero + UInt8(truncatingIfNeeded: rest / divisor))
            rest %= divisor
            divisor /= 10
        }
    }

    /// Appends a number of at least 0 with leading zeros, in `digits` digits. Excess leading digits are cut off.
    package static func append(_ value: Int, digits: Int, to output: inout some ByteOutput) {
        var divisor = 1
        for _ in 1..<max(digits, 1) { divisor *= 10 }
        while divisor > 0 {
            output.append(ASCII.zero + UInt8(truncatingIfNeeded: value / divisor % 10))
            divisor /= 10
        }
    }
}
