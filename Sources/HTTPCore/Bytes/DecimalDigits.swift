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
