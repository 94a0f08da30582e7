/// Strict percent-decoding (RFC 3986 §2.1).
package enum PercentDecoding {
    /// Returns the decoded text. Returns nil for an escape other than `%` and two hexadecimal digits, and for a result
    /// that is not UTF-8 or has a NUL.
    package static func decode(_ bytes: ArraySlice<UInt8>) -> String? {
        guard let decoded = decodedBytes(bytes) else { return nil }
        return String(validating: decoded, as: UTF8.self)
    }

    /// Decodes a buffer like a slice, and does not copy text without escapes in between.
    package static func decode(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        isPlain(bytes) ? String(validating: bytes, as: UTF8.self) : decode(Array(bytes)[...])
    }

    /// Returns whether the bytes have neither an escape nor a NUL.
    package static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for byte in bytes where byte == ASCII.percent || byte == 0 { return false }
        return true
    }

    /// Returns the decoded bytes, or nil for a malformed escape or a NUL.
    package static func decodedBytes(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard bytes.contains(where: { $0 == ASCII.percent || $0 == 0 }) else { return bytes }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            var byte = bytes[index]
            if byte == ASCII.percent {
                guard bytes.endIndex - index > 2, let high = ASCII.hexValue(bytes[index + 1]),
                    let low = ASCII.hexValue(bytes[index + 2])
                else { return nil }
                byte = high << 4 | low
                index += 2
            }
            guard byte != 0 else { return nil }
            decoded.append(byte)
            index += 1
        }
        return decoded[...]
    }
}

/// Percent-encoding (RFC 3986 §2.1).
package enum PercentEncoding {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Returns the text with every byte escaped that is not unreserved (RFC 3986 §2.3). It fits in any part of a URI.
    package static func encode(_ text: String) -> String {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if isUnreserved(byte) {
                encoded.append(byte)
            } else {
                encoded.append(ASCII.percent)
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }
}
