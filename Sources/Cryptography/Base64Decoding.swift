/// The decoding of one text as far as it has come, for texts that are too long to be decoded at once.
///
/// The text may be wrapped as for ``Base64/decodeLineWrapped(_:)``. It has to be the same each time.
public struct Base64Decoding: Sendable {
    private var bytes: [UInt8]
    /// How many characters a line has, and its break; nil for a text in one piece.
    private let wrapping: (length: Int, lineBreak: Int)?
    /// Without a final line break.
    private let count: Int
    private var position = 0
    private var written = 0

    /// Of older Apple encoders and PEM (RFC 7468), and of MIME (RFC 2045).
    private static let lineLengths = [64, 76]

    /// Begins with a text: decides whether it is wrapped, and makes room for what it encodes.
    public init(_ text: UnsafeRawBufferPointer) throws(Base64.Failure) {
        count = text.count - Self.finalBreak(text)
        let body = UnsafeRawBufferPointer(rebasing: text[..<count])
        wrapping =
            Self.lineLengths.lazy.compactMap { length in
                Self.lineBreak(body, at: length).map { (length: length, lineBreak: $0) }
            }.first
        guard let wrapping else {
            let last = try Base64Decoder.withoutPadding(body)
            bytes = [UInt8](repeating: 0, count: try Base64Decoder.decodedCount(last.count))
            return
        }
        let stride = wrapping.length + wrapping.lineBreak
        let fullLines = (count - 1) / stride
        let last = try Base64Decoder.withoutPadding(UnsafeRawBufferPointer(rebasing: body[(fullLines * stride)...]))
        // The text ends in a line, not in a break: the final one was taken off, and only one may be there.
        guard !last.isEmpty, last.count <= wrapping.length else { throw .invalidLineBreak }
        bytes = [UInt8](
            repeating: 0,
            count: try fullLines * wrapping.length / 4 * 3 + Base64Decoder.decodedCount(last.count))
    }

    /// Decodes about so many characters more.
    /// - Returns: Whether there are more.
    public mutating func advance(_ text: UnsafeRawBufferPointer, characters: Int) throws(Base64.Failure) -> Bool {
        precondition(count <= text.count, "the text must be that of the first call")
        let (end, overflow) = position.addingReportingOverflow(max(characters, 4))
        if let wrapping {
            try decodeLines(text, upTo: overflow ? count : min(end, count), wrapping.length, wrapping.lineBreak)
        } else {
            try decodePiece(text, upTo: overflow || end >= count ? count : end & ~3)
        }
        return position < count
    }

    /// What was decoded.
    public consuming func finish() -> [UInt8] {
        precondition(position == count, "the text must be decoded to its end")
        return bytes
    }

    private mutating func decodePiece(_ text: UnsafeRawBufferPointer, upTo end: Int) throws(Base64.Failure) {
        try decode(UnsafeRawBufferPointer(rebasing: text[position..<end]), isLast: end == count)
        position = end
    }

    private mutating func decodeLines(
        _ text: UnsafeRawBufferPointer, upTo end: Int, _ length: Int, _ lineBreak: Int
    ) throws(Base64.Failure) {
        while position < end {
            let lineEnd = min(position + length, count)
            try decode(UnsafeRawBufferPointer(rebasing: text[position..<lineEnd]), isLast: lineEnd == count)
            if lineEnd < count {
                guard Self.lineBreak(text, at: lineEnd) == lineBreak else { throw .invalidLineBreak }
                position = lineEnd + lineBreak
            } else {
                position = count
            }
        }
    }

    /// Decodes a part of the text; only the last has padding, and a number of characters that is no multiple of four.
    private mutating func decode(_ part: UnsafeRawBufferPointer, isLast: Bool) throws(Base64.Failure) {
        let part = isLast ? try Base64Decoder.withoutPadding(part) : part
        let byteCount = try Base64Decoder.decodedCount(part.count)
        let start = written
        try bytes.withUnsafeMutableBufferPointer { bytes throws(Base64.Failure) in
            let target = UnsafeMutableBufferPointer(rebasing: bytes[start..<start + byteCount])
            try Base64Decoder.decode(part, into: UnsafeMutableRawBufferPointer(target), .standard)
        }
        written += byteCount
    }

    /// How long the line break is that begins there: CR LF or LF; nil for none.
    private static func lineBreak(_ text: UnsafeRawBufferPointer, at offset: Int) -> Int? {
        // The bound is ours to check: an optimised build does not check it for a raw buffer.
        guard offset < text.count else { return nil }
        if text[offset] == UInt8(ascii: "\n") { return 1 }
        let isCRLF =
            offset + 1 < text.count && text[offset] == UInt8(ascii: "\r") && text[offset + 1] == UInt8(ascii: "\n")
        return isCRLF ? 2 : nil
    }

    /// How long the line break is that the text ends in; 0 when it ends in none, or has nothing else.
    private static func finalBreak(_ text: UnsafeRawBufferPointer) -> Int {
        if text.count > 2, lineBreak(text, at: text.count - 2) == 2 { return 2 }
        return text.count > 1 && lineBreak(text, at: text.count - 1) == 1 ? 1 : 0
    }
}
