internal import Foundation

/// The bounds of a reply's JSON, checked before it is decoded. The decoder takes up to 48 bytes of memory for each
/// value. Without bounds, a hostile server could exhaust the memory by a reply of allowed length.
enum JSONBounds {
    /// The limit of nested arrays and objects.
    static let depthLimit = 64

    /// Returns the limit of values in a text. Honest replies have one value for 20 bytes or more; short ones may have
    /// many.
    static func valueLimit(_ byteCount: Int) -> Int { 65_536 + byteCount / 16 }

    /// Checks that a text is within the bounds. Such a text can still be invalid JSON.
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

    /// Returns the position of the quotation mark that ends a string.
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
