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
