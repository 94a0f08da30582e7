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
