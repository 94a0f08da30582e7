/// Strict percent-decoding (RFC 3986 §2.1).
package enum PercentDecoding {
    /// The text that `bytes` encode, or nil when an escape is not `%` and two hexadecimal digits, or when the result
    /// is not UTF-8 or holds a NUL.
    package static func decode(_ bytes: ArraySlice<UInt8>) -> String? {
        guard let decoded = decodedBytes(bytes) else { return nil }
        return String(validating: decoded, as: UTF8.self)
    }

    /// As for a slice; text without escapes is not copied on the way.
    package static func decode(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        isPlain(bytes) ? String(validating: bytes, as: UTF8.self) : decode(Array(bytes)[...])
    }

    /// Whether nothing has to be decoded or refused: no escape and no NUL.
    package static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for byte in bytes where byte == ASCII.percent || byte == 0 { return false }
        return true
    }

    /// The bytes that `bytes` encode, or nil when an escape is malformed or stands for NUL.
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
