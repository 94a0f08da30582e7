extension IPAddress: CustomStringConvertible {
    /// Dotted decimal for IPv4, also where it is mapped into IPv6; for IPv6 the text of RFC 5952, section 4: lower case, no
    /// leading zeros, and `::` for the first of the longest runs of two or more groups of zeros.
    public var description: String {
        if isIPv4 {
            return (0..<4).map { String(UInt8(truncatingIfNeeded: bits >> (24 - 8 * $0))) }.joined(separator: ".")
        }
        let groups = (0..<8).map { UInt16(truncatingIfNeeded: bits >> (112 - 16 * $0)) }
        var longest = 0..<0
        var start = 0
        while start < 8 {
            let end = groups[start...].firstIndex { $0 != 0 } ?? 8
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = end + 1
        }
        let text = { (range: Range<Int>) in range.map { String(groups[$0], radix: 16) }.joined(separator: ":") }
        if longest.isEmpty { return text(0..<8) }
        return text(0..<longest.lowerBound) + "::" + text(longest.upperBound..<8)
    }
}
