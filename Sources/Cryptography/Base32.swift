/// Base32 (RFC 4648 section 6), for text that people read aloud and type: no digit resembles a letter.
public enum Base32 {
    /// The 32 digits, in the order of their values.
    public static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// Returns the text of `source`, padded with `=` to a multiple of eight characters unless `isPadded` is false.
    public static func encodeToString(_ source: some ByteSource, isPadded: Bool = true) -> String {
        source.withContiguousBytes { bytes in
            String(unsafeUninitializedCapacity: encodedCount(bytes.count, isPadded: isPadded)) { text in
                encode(bytes, isPadded: isPadded, into: text)
            }
        }
    }

    /// Returns the number of characters of the text of `byteCount` bytes.
    public static func encodedCount(_ byteCount: Int, isPadded: Bool = true) -> Int {
        let digitCount = (byteCount * 8 + 4) / 5
        return isPadded ? (digitCount + 7) / 8 * 8 : digitCount
    }

    /// Writes the text of `source` to the start of `text`, which must have room for it.
    ///
    /// Serves texts that are secret too.
    /// - Returns: The number of characters written.
    @discardableResult public static func encode(
        _ source: some ByteSource, isPadded: Bool = true, into text: UnsafeMutableBufferPointer<UInt8>
    ) -> Int {
        source.withContiguousBytes { bytes in
            let count = encodedCount(bytes.count, isPadded: isPadded)
            precondition(text.count >= count, "the text does not fit")
            var bits: UInt32 = 0
            var bitCount = 0
            var written = 0
            func write(_ value: UInt32) {
                text[written] = alphabet[Int(value & 31)]
                written += 1
            }
            for byte in bytes {
                bits = bits << 8 | UInt32(byte)
                bitCount += 8
                while bitCount >= 5 {
                    bitCount -= 5
                    write(bits >> UInt32(bitCount))
                }
            }
            if bitCount > 0 { write(bits << UInt32(5 - bitCount)) }
            for index in written..<count { text[index] = UInt8(ascii: "=") }
            return count
        }
    }
}
