/// Base64 (RFC 4648 section 4), canonical only: bytes have one text, and no other text decodes to them.
///
/// Rejects white space, missing or superfluous padding, bits set beyond the last byte, and the URL alphabet.
///
/// The text is the index of the tables, so timing on shared caches depends on it. Decoded text comes out of a TLS
/// record, which a neighbour on the machine cannot choose.
public enum Base64 {
    /// The reason for which a text is rejected.
    public enum Failure: Error, Hashable, Sendable {
        /// A character outside the alphabet (white space included), or padding before the end.
        case invalidCharacter
        /// Canonical base64 never has this number of characters.
        case invalidLength
        /// Bits beyond the last byte are set, so the text is not canonical.
        case nonZeroTrailingBits
        /// A line break that is not CR LF after exactly 64 characters.
        case invalidLineBreak
    }

    /// Returns the number of characters of the text of `byteCount` bytes, padding included.
    public static func encodedCount(_ byteCount: Int) -> Int {
        (byteCount + 2) / 3 * 4
    }

    /// Returns the canonical text of `source`, as ASCII.
    public static func encode(_ source: some ByteSource) -> [UInt8] {
        source.withContiguousBytes { bytes in
            let count = encodedCount(bytes.count)
            return [UInt8](unsafeUninitializedCapacity: count) { text, initialized in
                initialized = Base64Encoder.encode(bytes, into: UnsafeMutableRawBufferPointer(text), .standard)
            }
        }
    }

    /// Returns the canonical text of `source`.
    public static func encodeToString(_ source: some ByteSource) -> String {
        source.withContiguousBytes { bytes in
            String(unsafeUninitializedCapacity: encodedCount(bytes.count)) { text in
                Base64Encoder.encode(bytes, into: UnsafeMutableRawBufferPointer(text), .standard)
            }
        }
    }

    /// Writes the canonical text of `source` to the start of `target`, which must have room for it.
    ///
    /// Serves texts that are secret too.
    public static func encode(_ source: some ByteSource, into target: UnsafeMutableRawBufferPointer) {
        source.withContiguousBytes { bytes in
            _ = Base64Encoder.encode(bytes, into: target, .standard)
        }
    }

    /// Appends the canonical text of `source` to `target`.
    public static func encode(_ source: some ByteSource, appendingTo target: inout [UInt8]) {
        source.withContiguousBytes { bytes in
            let start = target.count
            target.append(contentsOf: repeatElement(0, count: encodedCount(bytes.count)))
            target.withUnsafeMutableBytes { buffer in
                let text = UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
                _ = Base64Encoder.encode(bytes, into: text, .standard)
            }
        }
    }

    /// Returns the bytes that the canonical `text` (ASCII) encodes.
    public static func decode(_ text: some ByteSource) throws(Failure) -> [UInt8] {
        try text.withContiguousBytes { text throws(Failure) in
            let unpadded = try Base64Decoder.withoutPadding(text)
            return try [UInt8](decodedCount: Base64Decoder.decodedCount(unpadded.count)) { bytes throws(Failure) in
                try Base64Decoder.decode(unpadded, into: bytes, .standard)
            }
        }
    }

    /// Returns the secret bytes that the canonical `text` (ASCII) encodes. Leaves no copy outside the result.
    public static func decodeSecure(_ text: some ByteSource) throws(Failure) -> SecureBytes {
        try text.withContiguousBytes { text throws(Failure) in
            let unpadded = try Base64Decoder.withoutPadding(text)
            return try SecureBytes(count: Base64Decoder.decodedCount(unpadded.count)) { bytes throws(Failure) in
                try Base64Decoder.decode(unpadded, into: bytes, .standard)
            }
        }
    }
}

extension Base64 {
    /// Decodes canonical text like ``decode(_:)``, which may also have line breaks.
    ///
    /// CR LF or LF may follow every 64 characters, as in PEM and older Apple encoders, or every 76, as in MIME and the
    /// command `base64`. A line break may end the text.
    ///
    /// All lines but the last have one length. Other line lengths and other white space are rejected.
    public static func decodeLineWrapped(_ text: some ByteSource) throws(Failure) -> [UInt8] {
        try text.withContiguousBytes { text throws(Failure) in
            var decoding = try Base64Decoding(text)
            while try decoding.advance(text, characters: .max) {}
            return decoding.finish()
        }
    }
}

/// Base64 with the URL alphabet and without padding (RFC 4648 section 5), canonical only.
public enum Base64URL {
    /// Returns the text of `source`, as ASCII.
    public static func encode(_ source: some ByteSource) -> [UInt8] {
        source.withContiguousBytes { bytes in
            [UInt8](unsafeUninitializedCapacity: Base64.encodedCount(bytes.count)) { text, initialized in
                initialized = Base64Encoder.encode(bytes, into: UnsafeMutableRawBufferPointer(text), .url)
            }
        }
    }

    /// Writes the text of `source` to the start of `target`, which must have room for ``Base64/encodedCount(_:)``
    /// characters.
    ///
    /// Serves texts that are secret too.
    /// - Returns: The number of characters written.
    public static func encode(_ source: some ByteSource, into target: UnsafeMutableRawBufferPointer) -> Int {
        source.withContiguousBytes { bytes in Base64Encoder.encode(bytes, into: target, .url) }
    }

    /// Returns the text of `source`.
    public static func encodeToString(_ source: some ByteSource) -> String {
        source.withContiguousBytes { bytes in
            String(unsafeUninitializedCapacity: Base64.encodedCount(bytes.count)) { text in
                Base64Encoder.encode(bytes, into: UnsafeMutableRawBufferPointer(text), .url)
            }
        }
    }

    /// Returns the bytes that the canonical `text` (ASCII) encodes.
    public static func decode(_ text: some ByteSource) throws(Base64.Failure) -> [UInt8] {
        try text.withContiguousBytes { text throws(Base64.Failure) in
            let count = try Base64Decoder.decodedCount(text.count)
            return try [UInt8](decodedCount: count) { bytes throws(Base64.Failure) in
                try Base64Decoder.decode(text, into: bytes, .url)
            }
        }
    }

    /// Decodes the canonical `text` (ASCII) into `target`, which has exactly the decoded size. Serves secrets of short
    /// use.
    public static func decode(
        _ text: some ByteSource, into target: UnsafeMutableRawBufferPointer
    ) throws(Base64.Failure) {
        try text.withContiguousBytes { text throws(Base64.Failure) in
            guard try Base64Decoder.decodedCount(text.count) == target.count else { throw .invalidLength }
            try Base64Decoder.decode(text, into: target, .url)
        }
    }

    /// Returns the secret bytes that the canonical `text` (ASCII) encodes. Leaves no copy outside the result.
    public static func decodeSecure(_ text: some ByteSource) throws(Base64.Failure) -> SecureBytes {
        try text.withContiguousBytes { text throws(Base64.Failure) in
            let count = try Base64Decoder.decodedCount(text.count)
            return try SecureBytes(count: count) { bytes throws(Base64.Failure) in
                try Base64Decoder.decode(text, into: bytes, .url)
            }
        }
    }
}

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
