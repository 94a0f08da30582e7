import HTTPCore

/// The fields of one head that affect the connection: host, length of the body, persistence, expectation.
struct HTTP1FieldSemantics: Sendable {
    enum Expectation: Sendable {
        case none, `continue`, unknown
    }

    /// The position of the value of `Host`.
    private(set) var host: Range<Int>?
    private(set) var closes = false
    private(set) var keepsAlive = false
    private(set) var expectation = Expectation.none
    private var contentLength: Int?
    private var transferCodings = 0
    private var isChunked = false

    /// Evaluates one field.
    mutating func read(
        name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>, at range: Range<Int>
    ) throws(HTTP1Error) {
        switch name.count {
        case 4 where ASCII.equalsIgnoringCase(name, "host"):
            guard host == nil else { throw .syntax(.duplicateHost) }
            guard HTTP1Host.isValid(value) else { throw .syntax(.malformedHost) }
            host = range
        case 6 where ASCII.equalsIgnoringCase(name, "expect"):
            let isContinue = expectation == .none && ASCII.equalsIgnoringCase(value, "100-continue")
            expectation = isContinue ? .continue : .unknown
        case 10 where ASCII.equalsIgnoringCase(name, "connection"):
            try readConnection(value)
        case 14 where ASCII.equalsIgnoringCase(name, "content-length"):
            guard contentLength == nil else { throw .syntax(.duplicateContentLength) }
            contentLength = try Self.contentLength(value)
        case 17 where ASCII.equalsIgnoringCase(name, "transfer-encoding"):
            transferCodings += 1
            isChunked = ASCII.equalsIgnoringCase(value, "chunked")
            guard isChunked || ASCII.isToken(value) else { throw .syntax(.malformedTransferEncoding) }
        default:
            break
        }
    }

    /// Returns the framing of the body (RFC 9112 §6.3), or throws when it is ambiguous.
    func framing(isVersion11: Bool) throws(HTTP1Error) -> BodyFraming {
        guard transferCodings > 0 else { return contentLength.map { $0 == 0 ? .none : .length($0) } ?? .none }
        guard isVersion11, contentLength == nil else { throw .syntax(.conflictingFraming) }
        guard transferCodings == 1 else { throw .syntax(.malformedTransferEncoding) }
        guard isChunked else { throw .transferCodingNotImplemented }
        return .chunked
    }

    private static func contentLength(_ value: UnsafeBufferPointer<UInt8>) throws(HTTP1Error) -> Int {
        // 18 digits always fit in an Int, and no client sends an exabyte.
        guard (1...18).contains(value.count), value.allSatisfy(ASCII.isDigit) else {
            throw .syntax(.malformedContentLength)
        }
        return value.reduce(0) { $0 * 10 + Int($1 - ASCII.zero) }
    }

    private mutating func readConnection(_ value: UnsafeBufferPointer<UInt8>) throws(HTTP1Error) {
        var rest = value[...]
        while true {
            let end = rest.firstIndex(of: ASCII.comma) ?? rest.endIndex
            let option = ASCII.trimmed(UnsafeBufferPointer(rebasing: rest[..<end]))
            // Empty list elements are allowed (RFC 9110 §5.6.1).
            if !option.isEmpty {
                guard ASCII.isToken(option) else { throw .syntax(.malformedConnection) }
                if ASCII.equalsIgnoringCase(option, "close") { closes = true }
                if ASCII.equalsIgnoringCase(option, "keep-alive") { keepsAlive = true }
            }
            guard end < rest.endIndex else { return }
            rest = rest[(end + 1)...]
        }
    }
}

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
