/// An IPv4 or IPv6 address as 128 bits.
///
/// An IPv4 address is stored mapped into IPv6 (RFC 4291 §2.5.5.2), so `192.0.2.1` and `::ffff:192.0.2.1` are equal.
public struct IPAddress: Hashable, Sendable {
    /// The bits, the most significant first.
    package let bits: UInt128

    package init(bits: UInt128) {
        self.bits = bits
    }

    /// `::`, which no host has.
    public static let unspecified = IPAddress(bits: 0)

    /// Reads dotted decimal, or the text form of IPv6 (RFC 4291 §2.2) without brackets and without a zone.
    public init?(_ text: String) {
        var text = text
        guard let address = text.withUTF8({ IPAddress($0) }) else { return nil }
        self = address
    }

    /// Reads an address like `init(_: String)`, without a `String`.
    public init?(_ text: UnsafeBufferPointer<UInt8>) {
        let bits = text.contains(ASCII.colon) ? Self.sixteenBitGroups(text) : Self.dottedDecimal(text[...])
        guard let bits else { return nil }
        self.bits = text.contains(ASCII.colon) ? bits : Self.mapped | bits
    }

    /// True for an IPv4 address.
    public var isIPv4: Bool { bits >> 32 == 0xFFFF }

    /// The whole IPv4 address, or the first 64 bits of an IPv6 address: the network of one client.
    ///
    /// The two never collide. The IPv6 network of a number like an IPv4 address is in `::/8`, which is not assigned.
    public var network: UInt64 { UInt64(truncatingIfNeeded: isIPv4 ? bits : bits >> 64) }

    private static let mapped: UInt128 = 0xFFFF << 32

    /// Reads four numbers up to 255. Rejects leading zeros, which some programs read as octal.
    private static func dottedDecimal(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> UInt128? {
        var bits: UInt128 = 0
        let parts = text.split(separator: ASCII.dot, maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        for part in parts {
            guard (1...3).contains(part.count), part.count == 1 || part.first != ASCII.zero,
                part.allSatisfy(ASCII.isDigit)
            else { return nil }
            let number = part.reduce(0 as UInt128) { $0 * 10 + UInt128($1 - ASCII.zero) }
            guard number <= 255 else { return nil }
            bits = bits << 8 | number
        }
        return bits
    }

    /// Reads eight groups of up to four hexadecimal digits. `::` stands once for one or more groups of zeros, and
    /// dotted decimal for the last two groups.
    private static func sixteenBitGroups(_ text: UnsafeBufferPointer<UInt8>) -> UInt128? {
        var bits: UInt128 = 0
        var count = 0
        /// The number of groups before `::`.
        var gap: Int?
        var rest = text[...]
        if rest.first == ASCII.colon {
            guard rest.dropFirst().first == ASCII.colon else { return nil }
            gap = 0
            rest = rest.dropFirst(2)
        }
        while let end = rest.isEmpty ? nil : rest.firstIndex(of: ASCII.colon) ?? rest.endIndex {
            let part = rest[..<end]
            let isLast = end == rest.endIndex
            if isLast, part.contains(ASCII.dot) {
                guard count <= 6, let tail = dottedDecimal(part) else { return nil }
                bits = bits << 32 | tail
                count += 2
                break
            }
            guard count < 8, (1...4).contains(part.count), let group = hexadecimal(part) else { return nil }
            bits = bits << 16 | group
            count += 1
            if isLast { break }
            rest = rest[(end + 1)...]
            if rest.first == ASCII.colon {
                guard gap == nil else { return nil }
                gap = count
                rest = rest.dropFirst()
            } else if rest.isEmpty {
                return nil
            }
        }
        guard let gap else { return count == 8 ? bits : nil }
        guard count < 8 else { return nil }
        let tail = 16 * (count - gap)
        let front = bits >> tail
        return front << (128 - 16 * gap) | bits & ((1 << tail) - 1)
    }

    private static func hexadecimal(_ digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt128? {
        var value: UInt128 = 0
        for digit in digits {
            guard let digit = ASCII.hexValue(digit) else { return nil }
            value = value << 4 | UInt128(digit)
        }
        return value
    }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted decimal for IPv4, also if mapped into IPv6. For IPv6 the text of RFC 5952, section 4.
    ///
    /// That is lower case without leading zeros, and `::` for the first of the longest runs of two or more groups of
    /// zeros.
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

/// The origin of a request: the peer of the connection, or the client that a trusted proxy names.
public struct ClientAddress: Hashable, Sendable, CustomStringConvertible {
    /// The numeric address, for example `127.0.0.1` or `2001:db8::1`, without brackets or port.
    public let address: String
    /// The address as a number. ``IPAddress/unspecified`` when the text is no address.
    public let ip: IPAddress
    public let port: UInt16

    public init(address: String, port: UInt16) {
        self.address = address
        ip = IPAddress(address) ?? .unspecified
        self.port = port
    }

    public var description: String {
        address.utf8.contains(ASCII.colon) ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
