/// 128 bits as 22 letters and digits, the most significant first: `0` to `9`, `A` to `Z`, `a` to `z`.
///
/// Accepts canonical text only: each value has one text, and each text at most one value.
public enum Base62 {
    /// The number of characters of a text: 62^22 is a little more than 2^128.
    public static let characterCount = 22

    private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    /// Returns the text of 16 bytes that may be secret, the most significant first.
    public static func encode(bytes: some ByteSource) -> SecureBytes {
        // The divisions leave only zeros in it.
        var rest = bytes.withContiguousBytes { [UInt8]($0) }
        precondition(rest.count == 16, "a text stands for 16 bytes")
        return SecureBytes(count: characterCount) { text in
            for index in text.indices.reversed() {
                var remainder: UInt32 = 0
                for place in rest.indices {
                    let part = remainder << 8 | UInt32(rest[place])
                    rest[place] = UInt8(part / 62)
                    remainder = part % 62
                }
                text[index] = alphabet[Int(remainder)]
            }
        }
    }

    /// Returns the 16 bytes of `text` (ASCII), or nil for any text that ``encode(bytes:)`` does not return.
    public static func decodeBytes(_ text: some ByteSource) -> SecureBytes? {
        var isValid = true
        let decoded = text.withContiguousBytes { text in
            SecureBytes(count: 16) { bytes in
                isValid = text.count == characterCount && text.allSatisfy { append($0, to: bytes) }
            }
        }
        return isValid ? decoded : nil
    }

    /// Multiplies the number in `bytes` by 62 and adds a digit. Returns false for no digit, and for a sum that is too
    /// large.
    private static func append(_ character: UInt8, to bytes: UnsafeMutableRawBufferPointer) -> Bool {
        guard let digit = digit(character) else { return false }
        var carry = UInt32(digit)
        for place in bytes.indices.reversed() {
            let part = UInt32(bytes[place]) * 62 + carry
            bytes[place] = UInt8(truncatingIfNeeded: part)
            carry = part >> 8
        }
        return carry == 0
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case 0x30...0x39: character - 0x30
        case 0x41...0x5A: character - 0x41 + 10
        case 0x61...0x7A: character - 0x61 + 36
        default: nil
        }
    }
}

/// Values as integers.
@available(iOS 18, macOS 15, *)
extension Base62 {
    /// Returns the text of `value`, as ASCII.
    public static func encode(_ value: UInt128) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: characterCount) { text, initialized in
            var rest = value
            for index in (0..<characterCount).reversed() {
                let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 62)
                text[index] = alphabet[Int(digit)]
                rest = quotient
            }
            initialized = characterCount
        }
    }

    /// Returns the value of `text` (ASCII), or nil for any text that ``encode(_:)`` does not return.
    public static func decode(_ text: some ByteSource) -> UInt128? {
        text.withContiguousBytes { text in
            guard text.count == characterCount else { return nil }
            var value: UInt128 = 0
            for character in text {
                guard let digit = digit(character) else { return nil }
                let (product, isTooLarge) = value.multipliedReportingOverflow(by: 62)
                let (sum, carry) = product.addingReportingOverflow(UInt128(digit))
                guard !isTooLarge, !carry else { return nil }
                value = sum
            }
            return value
        }
    }
}
