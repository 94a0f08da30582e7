/// 128 bits as 22 letters and digits, the most significant first: `0` to `9`, `A` to `Z`, `a` to `z`.
///
/// Accepts canonical text only: each value has one text, and each text at most one value.
@available(iOS 18, macOS 15, *)
public enum Base62 {
    /// The number of characters of a text: 62^22 is a little more than 2^128.
    public static let characterCount = 22

    private static let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

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
                let (sum, carry) = product.addingReportingOverflow(digit)
                guard !isTooLarge, !carry else { return nil }
                value = sum
            }
            return value
        }
    }

    private static func digit(_ character: UInt8) -> UInt128? {
        switch character {
        case 0x30...0x39: UInt128(character - 0x30)
        case 0x41...0x5A: UInt128(character - 0x41) + 10
        case 0x61...0x7A: UInt128(character - 0x61) + 36
        default: nil
        }
    }
}
