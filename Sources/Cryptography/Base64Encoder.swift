/// The encoding loop, for both alphabets.
enum Base64Encoder {
    /// Writes the text of `bytes` to the start of `text`, which must be large enough.
    /// - Returns: The number of characters written.
    static func encode(
        _ bytes: UnsafeRawBufferPointer, into text: UnsafeMutableRawBufferPointer, _ alphabet: Base64Alphabet
    ) -> Int {
        guard let source = bytes.baseAddress, let target = text.baseAddress, !bytes.isEmpty else { return 0 }
        precondition(text.count >= Base64.encodedCount(bytes.count), "the text does not fit")
        return alphabet.pairs.withUnsafeBufferPointer { pairs in
            // `pairs` has 4096 entries and every index has 12 bits.
            let fullGroups = bytes.count / 3
            for group in 0..<fullGroups {
                let input = source + group * 3
                let bits =
                    UInt32(input.load(as: UInt8.self)) << 16
                    | UInt32(input.load(fromByteOffset: 1, as: UInt8.self)) << 8
                    | UInt32(input.load(fromByteOffset: 2, as: UInt8.self))
                let output = target + group * 4
                output.storeBytes(of: pairs[Int(bits >> 12)], as: UInt16.self)
                output.storeBytes(of: pairs[Int(bits & 0xFFF)], toByteOffset: 2, as: UInt16.self)
            }
            return fullGroups * 4 + encodeRest(bytes, fullGroups, into: target + fullGroups * 4, pairs, alphabet)
        }
    }

    /// Encodes the last one or two bytes.
    private static func encodeRest(
        _ bytes: UnsafeRawBufferPointer, _ fullGroups: Int, into output: UnsafeMutableRawPointer,
        _ pairs: UnsafeBufferPointer<UInt16>, _ alphabet: Base64Alphabet
    ) -> Int {
        let rest = bytes.count - fullGroups * 3
        guard rest > 0 else { return 0 }
        let first = UInt32(bytes[fullGroups * 3]) << 16
        let second = rest == 2 ? UInt32(bytes[fullGroups * 3 + 1]) << 8 : 0
        let bits = first | second
        output.storeBytes(of: pairs[Int(bits >> 12)], as: UInt16.self)
        let third = UInt8(truncatingIfNeeded: UInt16(littleEndian: pairs[Int(bits & 0xFFF)]))
        if rest == 2 { output.storeBytes(of: third, toByteOffset: 2, as: UInt8.self) }
        guard alphabet.isPadded else { return rest + 1 }
        if rest == 1 { output.storeBytes(of: UInt8(ascii: "="), toByteOffset: 2, as: UInt8.self) }
        output.storeBytes(of: UInt8(ascii: "="), toByteOffset: 3, as: UInt8.self)
        return 4
    }
}
