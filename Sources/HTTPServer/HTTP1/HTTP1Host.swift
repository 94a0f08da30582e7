import HTTPCore

/// The value of a `Host` field: `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2), not empty.
enum HTTP1Host {
    static func isValid(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let first = value.first else { return false }
        let end = first == ASCII.openBracket ? endOfLiteral(value) : endOfName(value)
        guard let end, end > 0 else { return false }
        if end == value.count { return true }
        let port = value[(end + 1)...]
        guard value[end] == ASCII.colon, port.count <= 5, port.allSatisfy(ASCII.isDigit) else { return false }
        return port.reduce(0) { $0 * 10 + Int($1 - ASCII.zero) } <= 65_535
    }

    /// Returns the end of an IPv6 address in brackets. The address itself is not read.
    private static func endOfLiteral(_ value: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let close = value.firstIndex(of: ASCII.closeBracket), close >= 3 else { return nil }
        let isAddress = value[1..<close].allSatisfy {
            ASCII.hexValue($0) != nil || $0 == ASCII.colon || $0 == ASCII.dot
        }
        return isAddress && value[1..<close].contains(ASCII.colon) ? close + 1 : nil
    }

    /// Returns the end of a registered name or IPv4 address: letters, digits, `-`, `.`, `_`, `~`, sub-delimiters and
    /// escapes.
    private static func endOfName(_ value: UnsafeBufferPointer<UInt8>) -> Int? {
        // One bit for each character: ! $ & ' ( ) * + , - . 0-9 ; = then A-Z _ a-z ~.
        let low: UInt64 = 0x2BFF_7FD2_0000_0000
        let high: UInt64 = 0x47FF_FFFE_87FF_FFFE
        var index = 0
        while index < value.count, value[index] != ASCII.colon {
            let byte = value[index]
            if byte == ASCII.percent {
                guard index + 2 < value.count, ASCII.hexValue(value[index + 1]) != nil,
                    ASCII.hexValue(value[index + 2]) != nil
                else { return nil }
                index += 2
            } else if byte < 64 {
                guard (low >> UInt64(byte)) & 1 == 1 else { return nil }
            } else {
                guard byte < 128, (high >> UInt64(byte & 63)) & 1 == 1 else { return nil }
            }
            index += 1
        }
        return index
    }
}
