extension JSONParsing {
    /// Reads a number. Without fraction and exponent it is an exact integer or out of range; `-0` keeps its sign as a
    /// floating-point number.
    mutating func readNumber() throws(JSONError) -> JSONValue {
        let start = position
        let isNegative = next == ASCII.minus
        if isNegative { position += 1 }
        let digits = try integerDigits(of: start)
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
        if isInteger, !(isNegative && bytes[digits.lowerBound] == ASCII.zero) {
            guard let value = integer(digits, isNegative: isNegative) else {
                throw JSONError(.numberOutOfRange, at: start)
            }
            return .integer(value)
        }
        let text = String(decoding: UnsafeMutableBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self)
        guard let value = Double(text), value.isFinite else { throw JSONError(.numberOutOfRange, at: start) }
        return .double(value)
    }

    /// Steps over the integer part, which has no leading zeros.
    private mutating func integerDigits(of number: Int) throws(JSONError) -> Range<Int> {
        let start = position
        try skipDigits(of: number)
        if bytes[start] == ASCII.zero, position - start > 1 {
            position = start + 1
            throw malformed()
        }
        return start..<position
    }

    /// Steps over digits; a number that is too long is not read to its end.
    private mutating func skipDigits(of number: Int) throws(JSONError) {
        guard let byte = next, ASCII.isDigit(byte) else { throw malformed() }
        repeat {
            position += 1
            guard position - number <= limits.numberLengthLimit else { throw JSONError(.numberOutOfRange, at: number) }
        } while next.map(ASCII.isDigit) ?? false
    }

    private func integer(_ digits: Range<Int>, isNegative: Bool) -> Int64? {
        var value: Int64 = 0
        for index in digits {
            let digit = Int64(bytes[index] - ASCII.zero)
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            guard !overflow else { return nil }
            // Counting downwards reaches Int64.min, which has no positive counterpart.
            let (sum, carry) =
                isNegative
                ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
            guard !carry else { return nil }
            value = sum
        }
        return value
    }
}
