/// Base64 (RFC 4648 section 4), canonical only: the one text that encodes given bytes decodes to them, and no
/// other text does. A white space, missing or superfluous padding, bits set beyond the last byte, and the
/// URL alphabet are refused.
///
/// The tables are indexed by the text, so timing on shared caches depends on it. What arrives here has just
/// come out of a TLS record, which no neighbour chooses.
public enum Base64 {
    /// Why a text was refused.
    public enum Failure: Error, Hashable, Sendable {
        /// A character outside the alphabet, white space included, or padding that is not at the end.
        case invalidCharacter
        /// The number of characters is not one that canonical base64 can have.
        case invalidLength
        /// Bits beyond the last byte are set, so that this is not the canonical text.
        case nonZeroTrailingBits
        /// A line break that is not CR LF after exactly 64 characters.
        case invalidLineBreak
    }

    /// The number of characters that `byteCount` bytes take, padding included.
    public static func encodedCount(_ byteCount: Int) -> Int {
        (byteCount + 2) / 3 * 4
    }

    /// The canonical text of `source`, as ASCII.
    public static func encode(_ source: some ByteSource) -> [UInt8] {
        source.withContiguousBytes { bytes in
            let count = encodedCount(bytes.count)
            return [UInt8](unsafeUninitializedCapacity: count) { text, initialized in
                initialized = Base64Encoder.encode(bytes, into: UnsafeMutableRawBufferPointer(text), .standard)
            }
        }
    }

    /// The canonical text of `source`.
    public static func encodeToString(_ source: some ByteSource) -> String {
        source.withContiguousBytes { bytes in
            String(unsafeUninitializedCapacity: encodedCount(bytes.count)) { text in
                Base64Encoder.encode(bytes, into: UnsafeMutableRawBufferPointer(text), .standard)
            }
        }
    }

    /// Writes the canonical text of `source` to the start of `target`, which must have room for it: for texts that are
    /// secret too.
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

    /// The bytes that the canonical `text` (ASCII) encodes.
    public static func decode(_ text: some ByteSource) throws(Failure) -> [UInt8] {
        try text.withContiguousBytes { text throws(Failure) in
            let unpadded = try Base64Decoder.withoutPadding(text)
            return try [UInt8](decodedCount: Base64Decoder.decodedCount(unpadded.count)) { bytes throws(Failure) in
                try Base64Decoder.decode(unpadded, into: bytes, .standard)
            }
        }
    }

    /// The secret bytes that the canonical `text` (ASCII) encodes; no copy is left outside the result.
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
    /// Like ``decode(_:)``, but CR LF or LF may follow every 64 characters, as older Apple encoders and PEM have it, or
    /// every 76, as MIME has it and the command `base64`, and may end the text.
    ///
    /// The text is wrapped everywhere or nowhere: a line that is longer or shorter (other than the last) is
    /// refused, and so is any other white space.
    public static func decodeLineWrapped(_ text: some ByteSource) throws(Failure) -> [UInt8] {
        try text.withContiguousBytes { text throws(Failure) in
            var decoding = try Base64Decoding(text)
            while try decoding.advance(text, characters: .max) {}
            return decoding.finish()
        }
    }
}
