internal import Foundation

/// The bounds of a reply's JSON. They are checked before it is decoded: a server may be hostile, and the decoder takes up to
/// 48 bytes of memory for each value, so that a reply of allowed length could fill the memory.
enum JSONBounds {
    /// The limit of arrays and objects within each other.
    static let depthLimit = 64

    /// The limit of values in a text of a length. Honest replies have one for 20 bytes or more; short ones may have many.
    static func valueLimit(_ byteCount: Int) -> Int { 65_536 + byteCount / 16 }

    /// Returns whether a text is within the bounds. One that is may still be no JSON.
    static func include(_ text: [UInt8]) -> Bool {
        text.withUnsafeBytes { text in
            guard let start = text.baseAddress else { return true }
            // The decoder also reads UTF-16, in which every second byte of plain text is zero.
            if memchr(start, 0, text.count) != nil { return false }
            let limit = valueLimit(text.count)
            var (position, depth, count) = (0, 0, 0)
            while position < text.count {
                switch text[position] {
                case UInt8(ascii: "\""):
                    guard let end = end(ofString: position + 1, text) else { return false }
                    position = end
                case UInt8(ascii: "["), UInt8(ascii: "{"):
                    depth += 1
                    count += 1
                case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
                case UInt8(ascii: ","): count += 1
                default: break
                }
                if depth > depthLimit || count > limit { return false }
                position += 1
            }
            return true
        }
    }

    /// Returns where the quotation mark is that ends a string.
    private static func end(ofString start: Int, _ text: UnsafeRawBufferPointer) -> Int? {
        guard let base = text.baseAddress else { return nil }
        var position = start
        while position < text.count, let found = memchr(base + position, 0x22, text.count - position) {
            let end = UnsafeRawPointer(found) - base
            var escapes = end
            while escapes > position, text[escapes - 1] == UInt8(ascii: "\\") { escapes -= 1 }
            if (end - escapes).isMultiple(of: 2) { return end }
            position = end + 1
        }
        return nil
    }
}
