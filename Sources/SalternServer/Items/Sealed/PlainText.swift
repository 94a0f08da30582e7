/// Recognises valid UTF-8 without control characters other than tab, line feed, form feed and carriage return.
///
/// Let t(n) be the probability that n random bytes are such text. The first character takes:
///
/// - one byte: 99 of 256 values
/// - two bytes: 30·64 - 32 of 256² values (no C1 controls)
/// - three bytes: 16·64² - 2048 - 2048 of 256³ values (no overlong forms, no surrogates)
/// - four bytes: 2^20 of 256⁴ values
///
/// So t(n) <= 0.3868·t(n-1) + 0.0289·t(n-2) + 0.0037·t(n-3) + 0.0003·t(n-4), with t(0) = 1 and equality but for the
/// end. The largest root of that recurrence is 0.459, and 0.47^n bounds t(n).
enum PlainText {
    /// Returns true if all bytes are text. It stops at the first other byte: for ciphertext after two bytes on average.
    ///
    /// - Parameter isCut: True if the bytes may end within a character.
    static func isText(_ bytes: UnsafeRawBufferPointer, isCut: Bool = false) -> Bool {
        var index = 0
        while index < bytes.count {
            guard let length = characterLength(at: index, in: bytes) else {
                return isCut && bytes.count - index < longestCharacter
            }
            index += length
        }
        return true
    }

    private static let longestCharacter = 4

    /// Returns the length of the character that starts here (Unicode 16, table 3-7). Nil if no character of text does.
    private static func characterLength(at index: Int, in bytes: UnsafeRawBufferPointer) -> Int? {
        let first = bytes[index]
        switch first {
        case 0x09, 0x0A, 0x0C, 0x0D, 0x20...0x7E:
            return 1
        case 0xC2:
            return hasTail(0xA0...0xBF, count: 1, at: index, in: bytes) ? 2 : nil
        case 0xC3...0xDF:
            return hasTail(0x80...0xBF, count: 1, at: index, in: bytes) ? 2 : nil
        case 0xE0:
            return hasTail(0xA0...0xBF, count: 2, at: index, in: bytes) ? 3 : nil
        case 0xED:
            return hasTail(0x80...0x9F, count: 2, at: index, in: bytes) ? 3 : nil
        case 0xE1...0xEF:
            return hasTail(0x80...0xBF, count: 2, at: index, in: bytes) ? 3 : nil
        case 0xF0:
            return hasTail(0x90...0xBF, count: 3, at: index, in: bytes) ? 4 : nil
        case 0xF1...0xF3:
            return hasTail(0x80...0xBF, count: 3, at: index, in: bytes) ? 4 : nil
        case 0xF4:
            return hasTail(0x80...0x8F, count: 3, at: index, in: bytes) ? 4 : nil
        default:
            return nil
        }
    }

    /// Returns true if `count` bytes follow, the first of them in `range` and the others continuation bytes.
    private static func hasTail(
        _ range: ClosedRange<UInt8>, count: Int, at index: Int, in bytes: UnsafeRawBufferPointer
    ) -> Bool {
        guard index + count < bytes.count, range.contains(bytes[index + 1]) else { return false }
        return bytes[(index + 2)..<(index + 1 + count)].allSatisfy { (0x80...0xBF).contains($0) }
    }
}
