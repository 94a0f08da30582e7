extension JSONParsing {
    /// Reads a number. What is an integer is one, however it is written (`600000.0`, `6e5`), and exact; without fraction
    /// and exponent it is that or out of range. `-0` keeps its sign as a floating-point number.
    mutating func readNumber() throws(JSONError) -> JSONValue {
        let start = position
        if next == ASCII.minus { position += 1 }
        let firstDigit = position
        try skipIntegerDigits(of: start)
        var isInteger = true
        if next == ASCII.dot {
            isInteger = false
            position += 1
            try skipDigits(of: start)
        }
        if let byte = next, byte | 0x20 == UInt8(ascii: "e") {
            isInteger = false
            position += 1
            if let sign = next, sign == ASCII.plus || sign == ASCII.minus { position += 1 }
            try skipDigits(of: start)
        }
        guard position - start <= limits.numberLengthLimit else { throw JSONError(.numberOutOfRange, at: start) }
        if let value = exactInteger(bytes[start..<position]) { return .integer(value) }
        if isInteger, bytes[firstDigit] != ASCII.zero { throw JSONError(.numberOutOfRange, at: start) }
        let text = String(decoding: UnsafeMutableBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self)
        guard let value = Double(text), value.isFinite else { throw JSONError(.numberOutOfRange, at: start) }
        return .double(value)
    }

    /// Steps over the integer part, which has no leading zeros.
    private mutating func skipIntegerDigits(of number: Int) throws(JSONError) {
        let start = position
        try skipDigits(of: number)
        if bytes[start] == ASCII.zero, position - start > 1 {
            position = start + 1
            throw malformed()
        }
    }

    /// Steps over digits; a number that is too long is not read to its end.
    private mutating func skipDigits(of number: Int) throws(JSONError) {
        guard let byte = next, ASCII.isDigit(byte) else { throw malformed() }
        repeat {
            position += 1
            guard position - number <= limits.numberLengthLimit else { throw JSONError(.numberOutOfRange, at: number) }
        } while next.map(ASCII.isDigit) ?? false
    }

    /// The integer that a number is, if it is one other than `-0` and fits. Nothing is rounded.
    private func exactInteger(_ number: Slice<UnsafeMutableBufferPointer<UInt8>>) -> Int64? {
        let isNegative = number.first == ASCII.minus
        let mantissa = number.prefix { $0 | 0x20 != UInt8(ascii: "e") }
        // The value is that of `significant`, which does not end with a zero, times ten to the power of `exponent`.
        var significant: Int64 = 0
        var exponent = Self.exponent(number[mantissa.endIndex...].dropFirst())
        var zeros = 0
        var isFraction = false
        for byte in mantissa {
            if byte == ASCII.dot { isFraction = true }
            guard ASCII.isDigit(byte) else { continue }
            if isFraction { exponent -= 1 }
            zeros += 1
            if byte == ASCII.zero { continue }
            let digit = Int64(byte - ASCII.zero)
            guard let shifted = Self.shifted(significant, by: zeros) else { return nil }
            // Counting downwards reaches Int64.min, which has no positive counterpart.
            let (sum, overflow) =
                isNegative
                ? shifted.subtractingReportingOverflow(digit) : shifted.addingReportingOverflow(digit)
            guard !overflow else { return nil }
            significant = sum
            zeros = 0
        }
        if significant == 0 { return isNegative ? nil : 0 }
        return exponent + zeros < 0 ? nil : Self.shifted(significant, by: exponent + zeros)
    }

    /// An exponent without its letter; one that is beyond all integers is as good as any other such.
    private static func exponent(_ text: Slice<UnsafeMutableBufferPointer<UInt8>>) -> Int {
        let value = text.filter(ASCII.isDigit).reduce(0) { min($0 * 10 + Int($1 - ASCII.zero), 10_000) }
        return text.first == ASCII.minus ? -value : value
    }

    /// A value times a power of ten, if it fits.
    private static func shifted(_ value: Int64, by zeros: Int) -> Int64? {
        if value == 0 { return 0 }
        var value = value
        for _ in 0..<zeros {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            guard !overflow else { return nil }
            value = product
        }
        return value
    }
}
