/// The parts of a field value between separators, without spaces and tabs around them.
///
/// A separator inside a quoted string (RFC 9110 §5.6.4) belongs to the string.
struct FieldParts {
    private var rest: UnsafeBufferPointer<UInt8>?
    private let separator: UInt8

    init(of text: UnsafeBufferPointer<UInt8>, separator: UInt8) {
        rest = text
        self.separator = separator
    }

    /// Returns the next part, which can be empty; nil after the last one.
    mutating func next() -> UnsafeBufferPointer<UInt8>? {
        guard let text = rest else { return nil }
        let end = Self.endOfPart(text, separator)
        rest = end < text.count ? UnsafeBufferPointer(rebasing: text[(end + 1)...]) : nil
        return ASCII.trimmed(UnsafeBufferPointer(rebasing: text[..<end]))
    }

    private static func endOfPart(_ text: UnsafeBufferPointer<UInt8>, _ separator: UInt8) -> Int {
        var isQuoted = false
        var index = 0
        while index < text.count {
            let byte = text[index]
            if byte == ASCII.doubleQuote {
                isQuoted.toggle()
            } else if isQuoted, byte == ASCII.backslash {
                index += 1
            } else if !isQuoted, byte == separator {
                return index
            }
            index += 1
        }
        return text.count
    }
}
