package import Cryptography

/// Text that arrives in pieces of bytes. A character's bytes can be in two pieces.
package struct UTF8Pieces {
    /// The beginning of a character whose other bytes are in the next piece.
    private var rest: [UInt8] = []

    package init() {}

    /// True when no bytes are missing.
    package var isComplete: Bool { rest.isEmpty }

    /// Returns the characters that are complete now; nil when the bytes are not UTF-8 (RFC 3629).
    package mutating func append(_ piece: some ByteSource) -> String? {
        piece.withContiguousBytes { bytes in
            let end = bytes.count - Self.unfinishedCount(bytes)
            let text: String?
            if rest.isEmpty {
                text = String(strictUTF8: bytes[..<end])
                rest = Array(bytes[end...])
            } else if end <= 0 || bytes.count < 4 {
                // The character may end in this piece or in a later one.
                let joined = rest + bytes
                let end = joined.count - joined.withUnsafeBytes { Self.unfinishedCount($0) }
                text = String(strictUTF8: joined[..<end])
                rest = Array(joined[end...])
            } else {
                text = String(strictUTF8: rest + bytes[..<end])
                rest = Array(bytes[end...])
            }
            return text
        }
    }

    /// Returns the number of bytes at the end that begin an incomplete character: 0 to 3.
    private static func unfinishedCount(_ bytes: UnsafeRawBufferPointer) -> Int {
        for count in 1...3 where count <= bytes.count {
            let byte = bytes[bytes.count - count]
            if byte & 0b1100_0000 == 0b1000_0000 { continue }
            let length = byte >= 0b1111_0000 ? 4 : byte >= 0b1110_0000 ? 3 : byte >= 0b1100_0000 ? 2 : 1
            return length > count ? count : 0
        }
        return 0
    }
}
