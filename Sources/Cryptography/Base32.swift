/// Base32 (RFC 4648 section 6), for what people read aloud and type: no digit looks like a letter.
public enum Base32 {
    /// The 32 digits, in the order of their values.
    public static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// The text of `source`; with `=` up to a multiple of eight characters unless `isPadded` is false.
    public static func encodeToString(_ source: some ByteSource, isPadded: Bool = true) -> String {
        source.withContiguousBytes { bytes in
            let digitCount = (bytes.count * 8 + 4) / 5
            let count = isPadded ? (digitCount + 7) / 8 * 8 : digitCount
            return String(unsafeUninitializedCapacity: count) { text in
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
}
