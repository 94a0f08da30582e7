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
